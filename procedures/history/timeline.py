"""`show_timeline`, `export_instants`, `show_retention`: a table's instants and its reach."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.inspection.history.history import state_word
from lakewarden.engine.services.inspection.history.steps import (
    EXPORTED_ACTIONS,
    Steps,
    export,
    steps,
)
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    RowLimit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, moment_of, one_word
from lakewarden.procedures.history.arguments import EndTime, ShowArchived, StartTime, span_of


@procedure("show_timeline")
class ShowTimeline(Call):
    """The instants of a table, newest first; a row each, in the state it has come to."""

    table: TableName = None
    path: TablePath = None
    limit: Annotated[
        int,
        "No more rows than these, unless both start_time and end_time are given.",
        RowLimit(unless=("start_time", "end_time")),
    ] = 20
    show_archived: ShowArchived = False
    filter: Filter = ""
    start_time: StartTime = ""
    end_time: EndTime = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: str
        action: str
        state: Annotated[str, "REQUESTED, INFLIGHT or COMPLETED"]
        requested_time: datetime | None
        inflight_time: Annotated[datetime | None, "When its inflight file was written."]
        completed_time: datetime | None
        timeline_type: Annotated[str, "ACTIVE or ARCHIVED"]
        rollback_info: Annotated[
            str | None, "The instant that it rolled back, or the rollback that undid it."
        ]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        span = span_of(self.start_time, self.end_time, history.zone)
        for one in steps(history, span, archived=self.show_archived):
            yield _row(one)


def _row(one: Steps) -> ShowTimeline.Row:
    return ShowTimeline.Row(
        instant_time=one.instant.requested,
        action=one.instant.action.value,
        state=state_word(one.instant),
        requested_time=moment_of(one.requested_ms),
        inflight_time=moment_of(one.inflight_ms),
        completed_time=moment_of(one.completed_ms),
        timeline_type="ARCHIVED" if one.is_archived else "ACTIVE",
        rollback_info=one.rollback,
    )


@procedure("export_instants", is_mutating=True)
class ExportInstants(Call):
    """Write what completed instants say to a folder, archived ones too; a row for each file.

    A file that is there already is never replaced.
    """

    table: TableName = None
    local_folder: Annotated[str, "Where to write, outside of the table."]
    limit: Annotated[int, "No more instants than these; all with a negative number."] = -1
    actions: Annotated[str | None, "Only these, such as clean,commit; all without it."] = None
    desc: Annotated[bool, "Start with the newest instant."] = False
    filter: Filter = ""
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        export_detail: Annotated[str, "What was written."]

    def run(self, caller: Caller) -> Iterable[Row]:
        caller.permissions.check_path(self.local_folder)
        target = open_storage(Location(self.local_folder))
        history = open_table(caller, self.table, self.path).history()
        verb = "Would export" if self.dry_run else "Exported"
        for one in export(
            history,
            target,
            _actions(self.actions),
            limit=None if self.limit < 0 else self.limit,
            newest_first=self.desc,
            dry_run=self.dry_run,
        ):
            yield self.Row(export_detail=f"{verb} {one.instant} to {target.uri(one.name)}")


def _actions(text: str | None) -> tuple[Action, ...]:
    words = [action.value for action in EXPORTED_ACTIONS]
    chosen = [Action(one_word("actions", word, words)) for word in listed(text)]
    return tuple(chosen) or EXPORTED_ACTIONS


@procedure("show_retention")
class ShowRetention(Call):
    """What can still be asked of a table's past, and what has set it; one row.

    It goes by what cleans have removed. Nothing stands where all there was can be asked for.
    """

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        earliest_as_of: Annotated[str | None, "From here on, time travel shows every row."]
        as_of_set_by: Annotated[str | None, "The clean that removed what is older."]
        earliest_changes: Annotated[
            str | None, "A window of changes that starts here or later may end anywhere."
        ]
        changes_set_by: Annotated[str | None, "The clean that removed what was written before."]
        earliest_end: Annotated[
            str | None, "A window that ends here or later, or has no end, may start anywhere."
        ]
        earliest_restore: Annotated[
            str | None, "From here on, the table can be restored to every write."
        ]
        restore_set_by: Annotated[
            str | None, "The clean that removed older files, or the newest write in the archive."
        ]
        savepoints: Annotated[str, "Older instants that a savepoint keeps readable, with commas."]

    def run(self, caller: Caller) -> Iterable[Row]:
        found = open_table(caller, self.table, self.path).retention()
        yield self.Row(
            earliest_as_of=found.earliest_as_of,
            as_of_set_by=found.as_of_set_by,
            earliest_changes=found.earliest_changes,
            changes_set_by=found.changes_set_by,
            earliest_end=found.earliest_end,
            earliest_restore=found.earliest_restore,
            restore_set_by=found.restore_set_by,
            savepoints=",".join(found.savepoints),
        )
