"""`show_retention`: how far back a table can be asked."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


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
