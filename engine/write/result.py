"""The result of a write: what was committed, and what it took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.transaction.commit import Receipt
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Effect

_NOT_PUBLISHED = (
    "The write is committed, but the storage failed before it was published: the next "
    "operation on the table publishes it."
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Commit(Shown):
    """One write. Without rows it has made no instant, and committed nothing.

    `rows_written` counts rows in new files, moved ones among them.

    For updates and merges `rows_updated` counts the rows that matched, also those that merging
    keeps because they are newer.
    """

    instant: str | None
    completed: str | None
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
    # Whether it is an earlier commit, of the same batch of a stream; nothing was written now.
    is_repeated: bool = False

    def __str__(self) -> str:
        if self.is_repeated:
            return f"{self.operation}: the batch is in the table, {self.instant or 'without rows'}"
        if self.instant is None:
            return f"{self.operation}: no rows, nothing to commit"
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


def committed(
    operation: str,
    receipt: Receipt,
    metadata: CommitMetadata,
    effect: Effect,
    seconds: Mapping[str, float],
) -> Commit:
    """The result of a write whose instant has completed."""
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    return Commit(
        instant=receipt.instant,
        completed=receipt.completion_time,
        operation=operation,
        rows_written=sum(stat.num_writes for stat in stats),
        rows_inserted=effect.inserted,
        rows_updated=effect.updated,
        rows_deleted=effect.deleted,
        files=len(stats),
        bytes=sum(stat.file_size_in_bytes for stat in stats),
        seconds=seconds,
        errors=() if receipt.is_published else (_NOT_PUBLISHED,),
    )


def nothing_committed(operation: str, seconds: Mapping[str, float]) -> Commit:
    """The result of a write that had nothing to say."""
    return Commit(instant=None, completed=None, operation=operation, seconds=seconds)
