"""Refusals: what cannot be done about indexes, and why."""

from collections.abc import Sequence

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.table import FILES
from lakewarden.engine.table.config import TableConfig


def no_index(name: str, known: Sequence[str]) -> InvalidRequest:
    return InvalidRequest(
        "no_index",
        what=f"The table has no index {name!r}.",
        why=f"It has {', '.join(one for one in known if one != FILES) or 'none'}.",
        now="SHOW INDEXES lists them; IF EXISTS makes dropping what is not there no error.",
        index=name,
    )


def index_exists(name: str, partition: str) -> InvalidRequest:
    return InvalidRequest(
        "index_exists",
        what=f"The index {name!r} is there already, as {partition}.",
        why="A table has one of its kind at most.",
        now="Say IF NOT EXISTS, or REFRESH INDEX to build it anew.",
        index=name,
        partition=partition,
    )


def no_statistics(column: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_statistics_column",
        what=f"Statistics cannot be kept of the column {column!r}.",
        why="Its type has none.",
        now="Leave it out.",
        column=column,
    )


def not_built_yet(name: str, kind: str) -> InvalidRequest:
    return InvalidRequest(
        "index_not_built_yet",
        what=f"The index {name} is of a kind that cannot be built yet: {kind}.",
        why="A write has to keep every index true, which is not implemented for this kind.",
        now="Built and kept true are record_index, column_stats and partition_stats.",
        index=name,
        index_type=str(kind),
    )


def renamed_columns(config: TableConfig) -> InvalidRequest:
    return InvalidRequest(
        "renamed_columns",
        what=f"Column statistics cannot be built for {config.name!r}.",
        why="Its columns were renamed or moved with schema-on-read, and older files have them under"
        " other names, where readers would not look for statistics.",
        now="Cluster the table first, and clean what is older.",
        table=config.name,
    )
