"""`delete_marker`: remove what announced the files of instants that have ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.savepoints.tried import each_tried
from lakewarden.table import Table


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
