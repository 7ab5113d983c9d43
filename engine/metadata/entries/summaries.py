"""Summaries: what statistics say of the columns of a data file, from its rows or its footer."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import FooterRange, column_ranges
from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.entries.value_types import value_type


def summaries_of_rows(rows: pa.Table, columns: Sequence[str]) -> dict[str, ColumnSummary]:
    """The summaries of those columns that the rows have, of types that have statistics.

    Of no rows at all, as in a log of deletes, every column has one: nothing was seen.
    """
    if not rows.num_rows:
        return dict.fromkeys(columns, ColumnSummary(None, None, 0, 0))
    plain = {name: _plain(rows.column(name)) for name in columns if name in rows.column_names}
    return {
        name: _of_values(values)
        for name, values in plain.items()
        if value_type(values.type) is not None
    }


def summaries_of_footer(
    metadata: pq.FileMetaData, columns: Sequence[str], *, with_nan: Collection[str] = ()
) -> dict[str, ColumnSummary]:
    """The summaries that a base file's footer tells; of a file without rows there are none.

    Footers leave out NaN, so the caller says which columns have one; and they leave out the bounds
    of very long values, so columns may be missing here. Their summaries are to be made from rows:
    without any, Java takes the column as null throughout.
    """
    if not metadata.num_rows:
        return {}
    types = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    ranges = {one.name: one for one in column_ranges(metadata)}
    found = {
        name: _of_range(ranges[name], types[name], has_nan=name in with_nan)
        for name in columns
        if name in types and name in ranges and value_type(types[name]) is not None
    }
    return {name: summary for name, summary in found.items() if summary is not None}


def columns_with_nan(rows: pa.Table) -> frozenset[str]:
    """The columns in which some row has a NaN."""
    floats = (field.name for field in rows.schema if pa.types.is_floating(field.type))
    return frozenset(name for name in floats if _has_nan(rows.column(name)))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in a layout that can be compared."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _plain(values.cast(type_.value_type))
    simpler = {
        pa.float16(): pa.float32(),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
    }.get(type_)
    return values if simpler is None else values.cast(simpler)


def _of_values(values: pa.ChunkedArray) -> ColumnSummary:
    bounds = pc.min_max(values)
    low, high = bounds["min"], bounds["max"]
    if pa.types.is_floating(values.type) and _has_nan(values):
        high = pa.scalar(float("nan"), values.type)
    return ColumnSummary(low, high, len(values), values.null_count)


def _has_nan(values: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


def _of_range(range_: FooterRange, type_: pa.DataType, *, has_nan: bool) -> ColumnSummary | None:
    if range_.null_count is None:
        return None
    low, high = range_.minimum, range_.maximum
    if range_.null_count == range_.value_count:
        low = high = pa.scalar(None, type_)
    elif low is None or high is None:
        return None
    elif has_nan:
        high = pa.scalar(float("nan"), type_)
    sizes = range_.packed_bytes, range_.unpacked_bytes
    return ColumnSummary(low, high, range_.value_count, range_.null_count, *sizes)
