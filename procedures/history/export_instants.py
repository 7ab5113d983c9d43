"""`export_instants`: what instants say, as JSON files in a folder."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.export import EXPORTED_ACTIONS, export
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.declaring.words import one_word


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
