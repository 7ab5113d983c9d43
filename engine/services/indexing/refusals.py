"""Refusals: what cannot be done about indexes, and why."""

from collections.abc import Sequence

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.table.config import TableConfig


def no_index(name: str, known: Sequence[str]) -> InvalidRequest:
    return InvalidRequest(
        "no_index",
        what=f"The table has no index {name!r}.",
        why=f"It has {', '.join(one for one in known if one != FILES) or 'none'}.",
        now="SHOW INDEXES lists them. With IF EXISTS dropping a missing index is not an error.",
        index=name,
    )


def index_exists(name: str, partition: str) -> InvalidRequest:
    return InvalidRequest(
        "index_exists",
        what=f"The table already has the index {name!r}, as {partition}.",
        why="A table has at most one index of this kind.",
        now="Use IF NOT EXISTS, or REFRESH INDEX to rebuild it.",
        index=name,
        partition=partition,
    )


def no_statistics(column: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_statistics_column",
        what=f"Lakewarden cannot keep statistics of the column {column!r}.",
        why="Its type has no statistics.",
        now="Leave it out.",
        column=column,
    )


def renamed_columns(config: TableConfig) -> InvalidRequest:
    return InvalidRequest(
        "renamed_columns",
        what=f"Lakewarden cannot build column statistics for {config.name!r}.",
        why=(
            "Schema-on-read renamed or moved its columns, and older files have them under "
            "other names."
        ),
        now="Cluster the table first, then clean the older files.",
        table=config.name,
    )
