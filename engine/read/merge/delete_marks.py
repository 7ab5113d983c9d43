"""Delete marks: records of a log that say their key is to go, instead of giving it new values."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.merge_rules import MergeRules

IS_DELETED_FIELD = "_hoodie_is_deleted"
OPERATION_FIELD = "_hoodie_operation"
_DELETING_OPERATIONS = pa.array(["D", "-U"])


def marked_deleted(records: pa.Table, rules: MergeRules) -> np.ndarray:
    """Which records are deletes: by flag, by operation, or by the table's own field and marker."""
    marked = np.zeros(len(records), dtype=bool)
    names = set(records.column_names)
    if IS_DELETED_FIELD in names and pa.types.is_boolean(
        records.schema.field(IS_DELETED_FIELD).type
    ):
        marked |= _true(records.column(IS_DELETED_FIELD))
    if OPERATION_FIELD in names:
        operations = records.column(OPERATION_FIELD).cast(pa.string())
        marked |= _true(pc.is_in(operations, value_set=_DELETING_OPERATIONS))
    field, marker = rules.delete_field, rules.delete_marker
    if field is not None and marker is not None and field in names:
        marked |= _true(pc.equal(_as_text(records.column(field), field), marker))
    return marked


def _as_text(column: pa.ChunkedArray, field: str) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.DictionaryType):
        kind = kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InvalidRequest(
            "unsupported_delete_field",
            what=f"The delete field {field} has the type {kind}.",
            why=(
                "It is not known how Java spells such values when it compares them with the marker."
            ),
            now="Read the table with the engine that wrote it.",
            field=field,
            type=str(kind),
        )
    return column.cast(pa.string())


def _true(booleans: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(booleans.fill_null(False).to_numpy(), dtype=bool)
