"""`create_savepoint`, `show_savepoints`, `delete_savepoint`, `delete_marker`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeVar

from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, moment_of
from lakewarden.table import Table

Row = TypeVar("Row")


def each_tried(
    caller: Caller,
    instants: Sequence[str],
    done: Callable[[str], Row],
    failed: Callable[[str, LakewardenError], Row],
) -> Iterable[Row]:
    """A row for each instant, of what was done or why it failed."""
    rows: list[Row] = []
    failures: list[LakewardenError] = []
    for instant in instants:
        caller.check_interrupted()
        try:
            rows.append(done(instant))
        except LakewardenError as error:
            failures.append(error)
            rows.append(failed(instant, error))
    if failures and len(failures) == len(instants):
        raise failures[0]
    return rows


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


@procedure("create_savepoint", is_mutating=True)
class CreateSavepoint(Call):
    """Keep the files of the table as it was at a write, so that it can be come back to."""

    table: TableName = None
    commit_time: Annotated[str, "The instant of the write; the newest one without it."] = ""
    user: Annotated[str, "Who wants it."] = ""
    comments: Annotated[str, "What for."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        create_savepoint_result: Annotated[bool, "True: it is there; otherwise it is an error."]
        savepoint_time: str
        files_count: int
        partitions_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).savepoint(
            self.commit_time or None,
            user=self.user,
            comment=self.comments,
            dry_run=self.dry_run,
        )
        there, made = "It already existed.", f"It keeps {done.files} files."
        yield self.Row(
            create_savepoint_result=True,
            savepoint_time=done.instant,
            files_count=done.files,
            partitions_count=done.partitions,
            message=there if done.was_there else made,
        )


@procedure("show_savepoints")
class ShowSavepoints(Call):
    """The savepoints there are, newest first."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        savepoint_time: Annotated[str, "The instant of the write that it keeps."]
        completed_time: Annotated[str, "The instant at which it was made."]
        user: str
        comments: str
        saved_at: datetime | None
        files_count: int
        partitions_count: int

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in reversed(open_table(caller, self.table, self.path).savepoints()):
            yield self.Row(
                savepoint_time=one.instant,
                completed_time=one.completed,
                user=one.user,
                comments=one.comment,
                saved_at=moment_of(one.saved_at_ms),
                files_count=one.files,
                partitions_count=one.partitions,
            )


@procedure("delete_savepoint", is_mutating=True)
class DeleteSavepoint(Call):
    """Let savepoints go: the cleans to come remove what they have kept; a row each."""

    table: TableName = None
    instant_time: Annotated[str, "Savepoints, separated by commas; the newest without any."] = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        delete_savepoint_result: Annotated[bool, "Whether it is gone."]
        savepoint_time: str
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        chosen = chosen_savepoints(table, self.instant_time)
        return each_tried(
            caller, chosen, lambda instant: self._deleted(table, instant), self._failed
        )

    def _deleted(self, table: Table, instant: str) -> Row:
        done = table.delete_savepoint(instant, dry_run=self.dry_run)
        message = f"It has kept {done.files} files."
        return self.Row(delete_savepoint_result=True, savepoint_time=instant, message=message)

    def _failed(self, instant: str, error: LakewardenError) -> Row:
        message = str(error)
        return self.Row(delete_savepoint_result=False, savepoint_time=instant, message=message)


@procedure("delete_marker", is_mutating=True)
class DeleteMarker(Call):
    """Remove the markers of instants that have ended; a row for each instant."""

    table: TableName = None
    instant_time: Annotated[str, "Instants, separated by commas."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        delete_marker_result: Annotated[bool, "Whether its markers are gone."]
        instant_time: str
        deleted_markers_count: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        instants = tuple(dict.fromkeys(listed(self.instant_time)))
        if not instants:
            raise InvalidRequest(
                "bad_argument",
                what="The call names no instant.",
                why="The call removes the markers of named instants only.",
                now="Take them from show_markers.",
                argument="instant_time",
            )
        return each_tried(caller, instants, lambda one: self._delete(table, one), self._failed)

    def _delete(self, table: Table, instant: str) -> Row:
        count = table.delete_markers(instant, dry_run=self.dry_run)
        return self.Row(
            delete_marker_result=True,
            instant_time=instant,
            deleted_markers_count=count,
            message=f"{count} markers." if count else "It has no markers.",
        )

    def _failed(self, instant: str, error: LakewardenError) -> Row:
        return self.Row(
            delete_marker_result=False,
            instant_time=instant,
            deleted_markers_count=0,
            message=str(error),
        )
