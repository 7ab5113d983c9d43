"""Refusals: what cannot be done about indexes, and why."""

from collections.abc import Sequence

from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.metadata.reading.table import FILES
from lakewarden.engine.metadata.writing.builds import BuildDone, BuildNotes
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition
from lakewarden.engine.table.config import TableConfig

# A build that gives way to a rollback or restore; the caller may plan it anew.
UNDONE = "index_build_undone"
# A build that is not pending any more, and was not completed.
UNKNOWN = "unknown_plan"


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


def needs_record_index(name: str, config: TableConfig) -> InvalidRequest:
    return InvalidRequest(
        "record_index_needed",
        what=f"The index {name} cannot be created yet.",
        why="A secondary index names record keys, and a record index has to say where these are.",
        now=f"First CREATE INDEX record_index ON <table> ({', '.join(config.key_fields)}).",
        index=name,
    )


def unmaintainable(wanted: NewDefinition, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_index",
        what=f"The index {wanted.parsed().name!r} cannot be created: no write could maintain it.",
        why=why,
        now="Choose another column, or another function.",
        partition=wanted.partition,
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


class MadeElsewhereError(Conflict):
    """A build whose partitions another engine has made meanwhile, from the rows as well."""

    def __init__(self, done: BuildDone) -> None:
        super().__init__(
            "index_made_elsewhere",
            what=f"The build {done.instant} was ended.",
            why=f"Another process has made {', '.join(done.partitions)} meanwhile.",
            now="Nothing: the index is ready.",
            instant=done.instant,
        )
        self.done = done


def undone_build(notes: BuildNotes, why: str) -> Conflict:
    return Conflict(
        UNDONE,
        what=f"The build {notes.instant} of {', '.join(notes.partitions)} was ended.",
        why=why,
        now="Build the index again.",
        instant=notes.instant,
    )


def held_elsewhere(instant: str, live: str) -> Conflict:
    return Conflict(
        "plan_held",
        what=f"The build {instant} was not started.",
        why=f"{live} is running it.",
        now="Wait until it ends, or cancel it.",
        instant=instant,
    )


def unknown_build(instant: str) -> InvalidRequest:
    return InvalidRequest(
        UNKNOWN,
        what=f"The timeline has no pending build {instant}.",
        why="It was cancelled or superseded, or was never published.",
        now="SHOW INDEXES tells which indexes are being built, CALL show_plans by which plans.",
        instant=instant,
    )


def damaged_file(notes: BuildNotes, path: str) -> CorruptTable:
    return CorruptTable(
        "index_file_damaged",
        what=f"The base file {path} of the build {notes.instant} is not as it was written.",
        why="Another process changed or removed it.",
        now="Resume the build: it writes the file again.",
        path=path,
    )
