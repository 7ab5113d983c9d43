"""Removal: a write deletes partitions or all rows, on request or when they have expired."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import replace
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, one_of, whole_number
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.inline import after_write
from lakewarden.engine.snapshot import Snapshot, load_snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import epoch_ms
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.write import operations
from lakewarden.engine.write.request import Commit, WriteRequest
from lakewarden.engine.write.writer import TableWriter

_DAY_MS = 24 * 3600 * 1000

KEEP_BY_TIME = "KEEP_BY_TIME"
POLICY: Setting[str] = Setting(
    "hoodie.partition.ttl.strategy.type",
    KEEP_BY_TIME,
    one_of(KEEP_BY_TIME),
    "What decides when partitions expire: their last write",
)
# Zero stands for not set, as no table needs it.
DAYS_RETAINED: Setting[int] = Setting(
    "hoodie.partition.ttl.strategy.days.retain",
    0,
    whole_number,
    "How many days after its last write a partition expires; 0 for never",
)
EXPIRY_SETTINGS: tuple[Setting[object], ...] = (POLICY, DAYS_RETAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRetention:
    """How long partitions stay."""

    days: int

    @classmethod
    def of(cls, settings: Settings) -> "PartitionRetention":
        """What is set; without a number of days nothing may go."""
        days = settings[DAYS_RETAINED]
        if settings[POLICY] != KEEP_BY_TIME or days < 1:
            raise InvalidRequest(
                "no_retention",
                what="Lakewarden cannot tell which partitions have expired.",
                why="Neither the call nor the table says how many days to keep them.",
                now=f"Give retain_days => 30, or set {DAYS_RETAINED.key}.",
            )
        return cls(days=days)


def last_writes(state: Snapshot) -> Mapping[str, int]:
    """When each partition was written to last, by the files that readers see now."""
    zone = state.config.layout.zone
    newest: dict[str, int] = {}
    for slice_ in latest_file_slices(state, None):
        times = [slice_.base_instant, *(log.instant for log in slice_.log_files)]
        # A time that can't be read counts as new.
        moments = [epoch_ms(time, zone) for time in times]
        known = [snapshot for snapshot in moments if snapshot is not None]
        at_ms = max(known) if len(known) == len(moments) else _NEVER_EXPIRES
        newest[slice_.partition] = max(newest.get(slice_.partition, 0), at_ms)
    return newest


def expired(state: Snapshot, retention: PartitionRetention, now_ms: int) -> Mapping[str, int]:
    """The partitions that may go, each with the time of the last write to it.

    A table without partitions never goes as a whole.
    """
    if not state.config.partitions.fields:
        return {}
    before = now_ms - retention.days * _DAY_MS
    return {path: at for path, at in sorted(last_writes(state).items()) if at < before}


def expiring(retention: PartitionRetention, now_ms: int) -> Callable[[Snapshot], tuple[str, ...]]:
    """Which partitions a write takes away, asked when it is clear on which state it builds."""
    return lambda state: tuple(expired(state, retention, now_ms))


_NEVER_EXPIRES = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedPartition:
    """A partition without rows from now on."""

    partition: str
    file_groups: int
    bytes: int
    last_write_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartitionRemoval(Shown):
    """What was deleted, or would be; it is true when something was."""

    partitions: tuple[RemovedPartition, ...] = ()
    # Those that were named and hold no rows.
    empty: tuple[str, ...] = ()
    # None in a dry run, and where nothing was to be done.
    commit: Commit | None = None

    def __bool__(self) -> bool:
        return bool(self.partitions)


def drop_partitions(
    context: Context, partitions: Sequence[str], *, dry_run: bool = False
) -> PartitionRemoval:
    """Delete everything in partitions that are named by their paths."""

    def chosen(state: Snapshot) -> tuple[WriteRequest, tuple[RemovedPartition, ...], set[str]]:
        request = operations.delete_partitions(partitions, state.schema().columns, state.config)
        named = request.partitions_of(state)
        return request, _seen(state, named), set(named)

    request, found, named = retrying_view(partial(load_snapshot, context.storage), chosen)
    empty = tuple(sorted(named - {one.partition for one in found}))
    return _remove(context, request, found, dry_run=dry_run, empty=empty)


def truncate(context: Context, *, dry_run: bool = False) -> PartitionRemoval:
    """Delete everything."""

    def chosen(state: Snapshot) -> tuple[WriteRequest, tuple[RemovedPartition, ...]]:
        return operations.overwrite(state.schema().columns.empty_table()), _seen(state, None)

    request, found = retrying_view(partial(load_snapshot, context.storage), chosen)
    return _remove(context, request, found, dry_run=dry_run)


def expire_partitions(context: Context, *, dry_run: bool = False) -> PartitionRemoval:
    """Delete the partitions whose time is over.

    Which they are is decided anew on the state that the write builds upon: what was written to
    meanwhile stays.
    """
    retention, now_ms = PartitionRetention.of(context.settings), context.now_ms()

    def chosen(state: Snapshot) -> tuple[WriteRequest, tuple[RemovedPartition, ...]]:
        columns = state.schema().columns
        request = operations.delete_chosen_partitions(expiring(retention, now_ms), columns)
        return request, _seen(state, tuple(expired(state, retention, now_ms)))

    request, found = retrying_view(partial(load_snapshot, context.storage), chosen)
    return _remove(context, request, found, dry_run=dry_run)


def _remove(
    context: Context,
    request: WriteRequest,
    dry_run_result: tuple[RemovedPartition, ...],
    *,
    dry_run: bool,
    empty: tuple[str, ...] = (),
) -> PartitionRemoval:
    if dry_run or not dry_run_result:
        return PartitionRemoval(partitions=dry_run_result, empty=empty)
    commit = after_write(context, TableWriter(context).write(request)).commit
    # Writes that replace make an instant, whatever they find.
    assert commit.instant is not None
    replaced = retrying_view(
        partial(load_for_writing, context), partial(_replaced_by, instant=commit.instant)
    )
    if replaced is None:
        return PartitionRemoval(partitions=dry_run_result, empty=empty, commit=commit)
    known = {one.partition: one for one in dry_run_result}
    partitions = tuple(
        known.get(path) or RemovedPartition(partition=path, file_groups=len(groups), bytes=0)
        for path, groups in sorted(replaced.items())
    )
    return PartitionRemoval(partitions=partitions, empty=empty, commit=commit)


def _replaced_by(snapshot: Snapshot, instant: str) -> Mapping[str, Sequence[str]] | None:
    """The file groups that a write has put nothing in the place of, as it says itself.

    None if another process has rolled it back already.
    """
    write = snapshot.completed_write(instant)
    if write is None:
        return None
    active = snapshot.timeline.active
    return replace.decode(active.read(write), active.path(write)).partition_to_replace_file_ids


def _seen(state: Snapshot, partitions: tuple[str, ...] | None) -> tuple[RemovedPartition, ...]:
    """The partitions that hold files, of some or of all."""
    if partitions == ():
        return ()
    slices: dict[str, list[FileSlice]] = {}
    for slice_ in latest_file_slices(state, partitions):
        slices.setdefault(slice_.partition, []).append(slice_)
    written = last_writes(state) if slices else {}
    return tuple(
        RemovedPartition(
            partition=path,
            file_groups=len(slices[path]),
            bytes=sum(slice_.size_bytes for slice_ in slices[path]),
            last_write_ms=written.get(path),
        )
        for path in sorted(slices)
    )
