"""Indexed columns: of which columns a table keeps statistics."""

from collections.abc import Sequence

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, whole_number
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
