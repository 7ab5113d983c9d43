"""The result of a write: what was committed, and what it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
