"""Opening: the table that a call names, by its name or by its path."""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.run.ports import Ports
from lakewarden.procedures.declaring.caller import Caller, TableAddress
from lakewarden.table import Table


def open_table(caller: Caller, table: str | None, path: str | None) -> Table:
    """The table, if this caller may touch it."""
    place = named_place(caller, table, path)
    caller.permissions.check_path(place.path)
    return table_at(caller, place)


def table_at(caller: Caller, place: TableAddress) -> Table:
    """The table at a place, whose work ends when its caller wants no answer any more."""
    ports = Ports(check_wanted=caller.check_interrupted, events=caller.events)
    return Table(place.path, place.storage_options, ports=ports, session=caller.settings)


def named_place(caller: Caller, table: str | None, path: str | None) -> TableAddress:
    """The place that `table` or `path` names; both may be given if they mean the same one."""
    if not table and not path:
        raise InvalidRequest(
            "no_table",
            what="The call names no table.",
            why="A procedure needs one table, by its catalog name or by its path.",
            now="Add table => 'name' or path => '/where/it/is'.",
        )
    if not table:
        return caller.place_at(path or "")
    place = caller.place_of(table)
    if path and path.rstrip("/") != place.path.rstrip("/"):
        raise InvalidRequest(
            "two_tables",
            what=f"The table {table} is at {place.path}, and the path is {path}.",
            why="The call gives both, and they mean different tables.",
            now="Leave one of them out.",
            table=table,
            path=path,
        )
    return place
