"""Summaries: what statistics say of the columns of a data file, from its rows or its footer.

Indexed columns: of which columns a table keeps statistics.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.parquet_footer import FooterRange, column_ranges
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, whole_number
from lakewarden.engine.metadata.entries.changes import ColumnSummary
from lakewarden.engine.metadata.entries.value_types import value_type
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.schema import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakewarden.engine.table.versions import EARLY_INDEXES, index_version

COLUMNS_MAX = Setting(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    whole_number,
    "How many columns of a table get statistics, the meta columns not counted.",
)
COLUMN_LIST = Setting[tuple[str, ...]](
    "hoodie.metadata.index.column.stats.column.list",
    (),
    lambda text: tuple(name.strip() for name in text.split(",") if name.strip()),
    "The columns that get statistics, instead of the first ones.",
)
COLUMN_SETTINGS: tuple[Setting[object], ...] = (COLUMNS_MAX, COLUMN_LIST)
# In the order in which Java lists them.
_META_COLUMNS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def chosen_columns(schema: pa.Schema, settings: Settings, config: TableConfig) -> tuple[str, ...]:
    """The columns that the statistics of a new table are of."""
    has_meta_fields = config.has_meta_fields
    if index_version(config) == EARLY_INDEXES:
        schema = pa.schema([field for field in schema if _is_early(field.type)])
    listed = [name for name in settings[COLUMN_LIST] if name not in META_COLUMNS]
    for name in listed:
        if name not in schema.names or value_type(schema.field(name).type) is None:
            raise _no_statistics(name)
    if listed:
        return (*(_META_COLUMNS if has_meta_fields else ()), *listed)
    return first_columns(schema, columns_max=settings[COLUMNS_MAX], has_meta_fields=has_meta_fields)


def first_columns(
    schema: pa.Schema,
    *,
    columns_max: int = COLUMNS_MAX.default,
    has_meta_fields: bool = True,
) -> tuple[str, ...]:
    """The columns that a new table's statistics are of: three meta columns, then the first ones.

    Only types count that Java keeps statistics of.
    """
    own = [
        field.name
        for field in schema
        if field.name not in META_COLUMNS and value_type(field.type) is not None
    ]
    return (*(_META_COLUMNS if has_meta_fields else ()), *own[:columns_max])


def indexed_columns(
    defined: Sequence[str], schema: pa.Schema, *, before: pa.Schema | None = None
) -> tuple[str, ...]:
    """The columns to summarise in files of a schema, given those that the table's index defines.

    Where the index covers all columns that the rule gave for the schema `before` it grew, it grows
    with the schema. Columns that a user has chosen stay as they are.
    """
    has_meta_fields = COMMIT_TIME in defined
    if before is not None:
        by_rule = first_columns(before, has_meta_fields=has_meta_fields)
        if set(by_rule) == set(defined):
            defined = first_columns(schema, has_meta_fields=has_meta_fields)
    known = {*schema.names, *_META_COLUMNS}
    return tuple(name for name in defined if name in known)


def _is_early(type_: pa.DataType) -> bool:
    """Whether statistics from before release 1.1 hold a type."""
    kind = value_type(type_)
    return kind is not None and kind.wrapper(is_early=True) is not None


def _no_statistics(name: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_statistics_column",
        what=f"Lakewarden cannot keep statistics of the column {name!r}.",
        why="The table has no such column, or its type has no statistics.",
        now=f"Leave it out of {COLUMN_LIST.key}.",
        column=name,
    )


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


def summaries_of_parts(
    parts: Iterable[pa.Table], columns: Sequence[str]
) -> dict[str, ColumnSummary]:
    """The same of rows that come in parts, of which only one is in memory."""
    found: dict[str, ColumnSummary] = {}
    for rows in parts:
        for name, summary in summaries_of_rows(rows, columns).items():
            found[name] = _together(found[name], summary) if name in found else summary
    return found


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


def _together(one: ColumnSummary, other: ColumnSummary) -> ColumnSummary:
    """The summary of the rows of two; a bound that is NaN is one here, too."""
    if one.minimum is None or other.minimum is None:
        return other if one.minimum is None else one
    bounds = [one.minimum, one.maximum, other.minimum, other.maximum]
    found = _of_values(pa.chunked_array([pa.array(bounds, one.minimum.type)]))
    return replace(
        found,
        value_count=one.value_count + other.value_count,
        null_count=one.null_count + other.null_count,
    )


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
