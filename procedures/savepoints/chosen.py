"""Which savepoints are meant: those that are named, or the newest one."""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.texts import listed
from lakewarden.table import Table


def chosen_savepoints(table: Table, instants: str) -> tuple[str, ...]:
    """The instants of a list; that of the newest savepoint where the list is empty."""
    return tuple(dict.fromkeys(listed(instants))) or (newest_savepoint(table),)


def newest_savepoint(table: Table) -> str:
    """The instant of the newest savepoint; an error where there is none."""
    savepoints = table.savepoints()
    if not savepoints:
        raise InvalidRequest(
            "no_savepoint",
            what="The table has no savepoint.",
            why="The call names none, so it means the newest one.",
            now="Create one with create_savepoint.",
        )
    return savepoints[-1].instant
