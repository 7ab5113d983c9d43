"""Pruning: partitions and slices that cannot hold a row of the answer, and why.

What is known of a slice becomes an Arrow guarantee ("city is between A and F"), and Arrow decides
whether the predicate can hold under it. Unknown means kept: pruning may only ever save work.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.metadata.reading.column_stats import ColumnRange
from lakewarden.engine.read.merge.predicate import Known, Predicate, possible
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.table.config import PartitionScheme

FileRanges = Mapping[str, Mapping[str, ColumnRange]]

# Paths spell only these types so that a text cast gives the very value of the column.
_SPELLED = (pa.types.is_string, pa.types.is_integer, pa.types.is_date32, pa.types.is_boolean)


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """Something a read does not touch, and the reason."""

    partition: str
    file_id: str | None
    reason: str


def prune_partitions(
    partitions: Sequence[str], scheme: PartitionScheme, schema: pa.Schema, predicate: Predicate
) -> tuple[tuple[str, ...], tuple[SkippedPart, ...]]:
    """The partitions that may hold matching rows, and those that can't."""
    known = [_known_of_path(scheme.values(path), schema) for path in partitions]
    kept = possible(known, predicate, schema)
    skipped = tuple(
        SkippedPart(path, None, f"the partition's value excludes {predicate.expression}")
        for number, path in enumerate(partitions)
        if number not in kept
    )
    return tuple(path for number, path in enumerate(partitions) if number in kept), skipped


def prune_by_partition_ranges(
    partitions: Sequence[str],
    ranges: FileRanges,
    schema: pa.Schema,
    predicate: Predicate,
) -> tuple[tuple[str, ...], tuple[SkippedPart, ...]]:
    """The partitions that may hold matching rows by the bounds of all their files together.

    Rows of files that lack a column count nowhere, so that nulls are always possible.
    """
    known = [
        {
            column: _known_of_range(
                column,
                replace(range_, null_count=max(range_.null_count, 1)),
                schema.field(column).type,
            )
            for column, range_ in ranges.get(path, {}).items()
            if range_.minimum is not None
        }
        for path in partitions
    ]
    kept = possible(known, predicate, schema)
    reason = f"partition statistics exclude {predicate.expression}"
    skipped = tuple(
        SkippedPart(path, None, reason)
        for number, path in enumerate(partitions)
        if number not in kept
    )
    return tuple(path for number, path in enumerate(partitions) if number in kept), skipped


def may_hold_rows(spec: ReadSpec, partition: str) -> bool:
    """Whether a partition may have rows for a read, be it new or known."""
    if spec.predicate is None:
        return True
    return bool(prune_partitions((partition,), spec.partitions, spec.schema, spec.predicate)[0])


def prune_slices(
    slices: Sequence[FileSlice],
    ranges: Mapping[str, FileRanges],
    schema: pa.Schema,
    predicate: Predicate,
) -> tuple[tuple[FileSlice, ...], tuple[SkippedPart, ...]]:
    """The slices that may hold matching rows; `ranges` are by partition, file and column."""
    known = [_known_of_slice(slice_, ranges, predicate.columns, schema) for slice_ in slices]
    kept = possible(known, predicate, schema)
    skipped = tuple(
        SkippedPart(
            slice_.partition, slice_.file_id, f"column statistics exclude {predicate.expression}"
        )
        for number, slice_ in enumerate(slices)
        if number not in kept
    )
    return tuple(slice_ for number, slice_ in enumerate(slices) if number in kept), skipped


def _known_of_path(values: Mapping[str, str | None], schema: pa.Schema) -> Known:
    known = {}
    for name, text in values.items():
        if name not in schema.names or not any(is_(schema.field(name).type) for is_ in _SPELLED):
            continue
        if text is None:
            known[name] = [pc.field(name).is_null()]
            continue
        value = _spelled_value(text, schema.field(name).type)
        if value is not None:
            known[name] = [pc.field(name) == value]
    return known


def _spelled_value(text: str, type_: pa.DataType) -> pa.Scalar | None:
    try:
        return pa.scalar(text).cast(type_)
    except pa.ArrowInvalid:
        return None


def range_of_slice(
    slice_: FileSlice, ranges: Mapping[str, FileRanges], column: str
) -> ColumnRange | None:
    """The range of a column over the files of a slice, if all of them tell theirs.

    A row of the slice has its value from one of the files.
    """
    files = [log.name for log in slice_.log_files]
    if slice_.base_file is not None:
        files.append(slice_.base_file.name)
    of_files = ranges.get(slice_.partition, {})
    per_file = [of_files.get(name, {}).get(column) for name in files]
    if not per_file or not all(per_file):
        return None
    return reduce(ColumnRange.union, filter(None, per_file))


def _known_of_slice(
    slice_: FileSlice,
    ranges: Mapping[str, FileRanges],
    columns: Iterable[str],
    schema: pa.Schema,
) -> Known:
    found = ((column, range_of_slice(slice_, ranges, column)) for column in columns)
    return {
        column: _known_of_range(column, range_, schema.field(column).type)
        for column, range_ in found
        if range_ is not None
    }


def _known_of_range(name: str, range_: ColumnRange, type_: pa.DataType) -> list[pc.Expression]:
    field = pc.field(name)
    if range_.is_all_null:
        return [field.is_null()]
    bounds = range_.bounds(type_)
    if bounds is None:
        return []
    low, high = field >= bounds[0], field <= bounds[1]
    if range_.null_count == 0:
        return [low, high]
    # Arrow understands "in range or null" only bound by bound.
    return [low | field.is_null(), high | field.is_null()]
