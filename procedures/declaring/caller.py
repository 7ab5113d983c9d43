"""Callers: what a procedure may use of its caller, besides its arguments.

Opening: the table that a call names, by its name or by its path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.events import EventSink, log_event
from lakewarden.engine.run.ports import Ports
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Where a table is; the storage's options may hold credentials, so they are never shown."""

    path: str
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)


class Caller(Protocol):
    """A session, a connection or a command line."""

    @property
    def permissions(self) -> Permissions:
        """What this caller may touch."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the session sets, by Hudi's keys and ours."""

    @property
    def spark(self) -> "SparkSession | None":
        """The session that can run large work, where there is one."""

    def place_of(self, table: str) -> TableAddress:
        """Where a table of that name is; `InvalidRequest` when there is none."""

    def place_at(self, path: str) -> TableAddress:
        """A place by its path, with the options that this caller has for its storage."""

    def tables_in(self, database: str) -> Sequence[str]:
        """The names of a database's Hudi tables, as `place_of` takes them."""

    @property
    def events(self) -> EventSink:
        """Where the engine says what it does meanwhile."""

    def check_interrupted(self) -> None:
        """Raise when the caller does not want an answer any more; any thread may ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCaller:
    """A caller without a catalog: a table's name is its path."""

    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)
    spark: "SparkSession | None" = None
    events: EventSink = log_event

    def place_of(self, table: str) -> TableAddress:
        return self.place_at(table)

    def place_at(self, path: str) -> TableAddress:
        return TableAddress(path, self.storage_options)

    def tables_in(self, database: str) -> Sequence[str]:
        raise InvalidRequest(
            "no_catalog",
            what=f"Lakewarden does not know the database {database}.",
            why="Outside a Spark session there is no catalog to look it up in.",
            now="Name a table by its path, or make this call in a Spark session.",
            database=database,
        )

    def check_interrupted(self) -> None:
        """A signal is what interrupts a process, and Python raises it by itself."""


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
