"""The result of a write: what was committed, and what it took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One committed write. `rows_written` counts rows in new files, moved ones among them.

    For updates and merges `rows_updated` counts the rows that matched, also those that merging
    keeps because they are newer.
    """

    instant: str
    completed: str
    operation: str
    rows_written: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    bytes: int = 0
    # By phase, in the order in which they came.
    seconds: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    # What the write has changed of the table's columns.
    columns_added: tuple[str, ...] = ()
    columns_widened: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.operation} {self.instant}: {self.rows_inserted} inserted, {self.rows_updated}"
            f" updated, {self.rows_deleted} deleted, {self.files} files, {self.bytes} bytes,"
            f" {sum(self.seconds.values()):.2f} s"
        )


def count_rows(plan: WritePlan, files: Sequence[WrittenFile]) -> Effect:
    """The rows that files count; a moved row is an insert to one file and a delete to another."""
    stats = [file.stat for file in files]
    return Effect(
        inserted=sum(stat.num_inserts for stat in stats) - plan.moved,
        updated=sum(stat.num_update_writes for stat in stats) + plan.moved,
        deleted=sum(stat.num_deletes for stat in stats) - plan.departures,
    )
