"""Partial updates: which values of a record count, and which are left to an older record.

Three reasons for a value not to count: its block does not have the column; it is its field's
default (mode IGNORE_DEFAULTS); it is the marker for a value the source did not send (mode
FILL_UNAVAILABLE, text and bytes only). A record that wins takes such values from the record it
heartbeat. A late record is ignored, but where the winner has a value that does not count, even a
late record's value is better than none.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.table.merge_rules import MergeRules, PartialMode

# A field's default where it is not null, by the field's name.
Defaults = Mapping[str, object]


def counting_values(
    records: pa.Table, rules: MergeRules, defaults: Defaults
) -> dict[str, np.ndarray]:
    """For each column with values that don't count under the table's mode: which ones do."""
    columns = {}
    for field in records.schema:
        counts = _counts(records.column(field.name), field, rules, defaults)
        if counts is not None and not counts.all():
            columns[field.name] = counts
    return columns


def _counts(
    column: pa.ChunkedArray, field: pa.Field, rules: MergeRules, defaults: Defaults
) -> np.ndarray | None:
    if rules.partial is PartialMode.IGNORE_DEFAULTS:
        return _differs(column, defaults.get(field.name))
    if rules.partial is PartialMode.FILL_UNAVAILABLE and _holds_text(field.type):
        is_marker = pc.equal(column, pa.scalar(rules.unavailable_value.encode()).cast(field.type))
        return ~_flags(is_marker)
    return None


def _differs(column: pa.ChunkedArray, default: object) -> np.ndarray:
    if default is None:
        return _flags(column.is_valid())
    # Such a field's null is a value like any other.
    return ~_flags(pc.equal(column, pa.scalar(default, column.type)))


def _holds_text(kind: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string)
    return any(matches(kind) for matches in (*text, pa.types.is_binary, pa.types.is_large_binary))


def _flags(booleans: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(booleans.fill_null(False).to_numpy(), dtype=bool)
