"""Refreshing an index: new base files for its file groups, which take the old ones' place at once.

To the metadata table it is a compaction of these groups whose base files come from the table's rows
instead of the old entries: the groups and their number stay, so that writers go on reporting and
readers go on using the old entries until the swap. What completes after the base instant lies above
the new base files, as above those of any compaction.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from lakewarden.engine.file_groups.planned_slices import operation_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan, encode_plan
from lakewarden.engine.formats.instant_metadata.indexing import IndexPartition, IndexPlan
from lakewarden.engine.formats.instant_metadata.indexing import encode_plan as encode_indexing_plan
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, LakewardenError
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.initialise import base_stat, put_partition_metadata
from lakewarden.engine.metadata.reading.shards import record_shard
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    RECORD_INDEX,
    MetadataTable,
    load_metadata_table,
)
from lakewarden.engine.metadata.writing.builds import (
    REFRESH_KEY,
    BuildDone,
    BuildNotes,
    builds_on,
    finished_groups,
    forget_notes,
    write_notes,
)
from lakewarden.engine.metadata.writing.compact import withdraw_compactions
from lakewarden.engine.metadata.writing.coverage import covers
from lakewarden.engine.metadata.writing.instants import commit_content, complete, publish
from lakewarden.engine.metadata.writing.log_compact import withdraw_log_compactions
from lakewarden.engine.run.processes import stopping_on_signal
from lakewarden.engine.services.indexing.base_files import BaseWriter
from lakewarden.engine.services.indexing.catch_up import taken_from_base
from lakewarden.engine.services.indexing.gather import newest_write
from lakewarden.engine.services.indexing.refusals import UNDONE, held_elsewhere
from lakewarden.engine.services.indexing.run_build import (
    completed_content,
    end_attempt,
    remove_strays,
)
from lakewarden.engine.services.indexing.schedule_build import SUPERSEDED, base_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts import attempt as completion
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish_in, to_inflight
from lakewarden.engine.transaction.attempts.take_over import pending_of, working_attempt
from lakewarden.engine.transaction.rollback.ended_builds import end_build, remove_base_files
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from lakewarden.engine.transaction.sweep.sweep import clean_up_instant


def refresh_ready(context: Context, partitions: Sequence[str]) -> BuildDone:
    """Give ready partitions new base files, in place of all that they have had before.

    Steps of `index-refresh`: lock, reload, rivals, plan, notes, unlock, base, swap-lock, check,
    born, swap, append, swap-unlock, tidy. Until `index-refresh.swap` reads use the old entries. A
    refresh whose process died is removed by the next write, and the old entries stay.
    """
    with stopping_on_signal():
        refresh = _begin(context, partitions)
        try:
            with aborting_on_error(context, refresh.attempt):
                return refresh.to_the_end()
        except LakewardenError as error:
            end_attempt(context, refresh.attempt, str(error))
            refresh.leave_nothing()
            raise


def can_swap(snapshot: Snapshot, partitions: Sequence[str]) -> bool:
    """Whether each partition has all file groups that its entries belong into."""
    ready = snapshot.config.metadata_partitions
    if not all(one in ready and snapshot.metadata.slices(one) for one in partitions):
        return False
    index = next((one for one in snapshot.definitions if one.partition == RECORD_INDEX), None)
    if RECORD_INDEX not in partitions or index is None or not index.is_partitioned:
        return True
    shards = _counts(snapshot.metadata.slices(RECORD_INDEX), RECORD_INDEX)
    data = snapshot.source(use_metadata=True).partitions()
    return all(f"{RECORD_INDEX}/{record_shard(one)}" in shards for one in data)


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One refresh: the table as it is read, and the slices that it replaces."""

    context: Context
    attempt: Attempt
    snapshot: Snapshot
    notes: BuildNotes
    slices: tuple[FileSlice, ...]

    def to_the_end(self) -> BuildDone:
        """Steps `index-refresh.base` to `index-refresh.tidy`."""
        workers = self.context.ports.executor
        writer = BaseWriter(self.context, self.attempt, self.snapshot, self.notes, workers)
        with self._blaming_what_is_gone():
            writer.write()
        # What a group had before must not show through where it has nothing any more.
        writer.write_empty([(one.partition, one.file_id) for one in self.slices])
        newest = self._swap()
        storage, instant = self.context.storage, self.notes.instant
        records = sum(one.entries for one in finished_groups(storage, instant).values())
        self.attempt.stop_heartbeats()
        clean_up_instant(storage, read_ledger(storage, instant))
        forget_notes(storage, instant)
        return BuildDone(
            instant=instant,
            partitions=self.notes.partitions,
            upto=self.notes.upto,
            caught_up_to=newest,
            records_count=records,
        )

    @contextmanager
    def _blaming_what_is_gone(self) -> Iterator[None]:
        """A file that is missing because a write was undone meanwhile is reported as that."""
        try:
            yield
        except CorruptTable:
            with self.context.lock.hold():
                ledger = self.attempt.check_claim()
                snapshot = reload_under_lock(self.context, ledger)
                self._check(snapshot, load_metadata_table(self.context.storage, snapshot.config))
            known = {one.key for one in self.snapshot.timeline.active.completed((Action.CLEAN,))}
            for one in snapshot.timeline.active.instants:
                if one.action is Action.CLEAN and one.key not in known:
                    why = f"The clean {one.requested} removed files meanwhile."
                    raise _overtaken(self.notes.partitions, why) from None
            raise

    def leave_nothing(self) -> None:
        """Remove what was written after others had ended it."""
        with self.context.lock.hold():
            snapshot = reload_under_lock(self.context)
            if snapshot.config.metadata_partitions:
                remove_base_files(self.context, snapshot, self.notes, self.notes.partitions)
        forget_notes(self.context.storage, self.notes.instant)
        remove_strays(self.context)

    def _swap(self) -> str:
        """Steps `index-refresh.swap-lock` to `index-refresh.swap-unlock`; the newest write then."""
        base = self.notes.base_instant
        with self.context.lock.hold() as held:
            ledger = self.attempt.check_claim()
            snapshot = reload_under_lock(self.context, ledger)
            state = load_metadata_table(self.context.storage, snapshot.config)
            self._check(snapshot, state)
            held.assert_held()
            for partition in self.notes.partitions:
                put_partition_metadata(state, partition, base)
            publish(state, base, Action.COMPACTION, encode_plan(self._replaced()))
            complete(state, base, Action.COMPACTION, self._content())
            newest = newest_write(snapshot) or self.notes.upto
            content = completed_content(self.notes, newest)
            completion.complete(self.context, held, snapshot, ledger, content)
        return newest

    def _content(self) -> bytes:
        groups = finished_groups(self.context.storage, self.notes.instant).values()
        stats = [
            base_stat(f"{one.partition}/{one.name}", one.file_id, one.entries, one.size_bytes)
            for one in groups
        ]
        return commit_content(stats, Operation.COMPACT, compacted=True)

    def _replaced(self) -> CompactionPlan:
        return CompactionPlan(operations=tuple(operation_of(one) for one in self.slices))

    def _check(self, snapshot: Snapshot, state: MetadataTable) -> None:
        """Step `index-refresh.check`: what was read, and what is replaced, are as they were."""
        names = self.notes.partitions
        undone = taken_from_base(snapshot, self.notes)
        if undone is not None:
            raise _overtaken(names, f"{undone} undid a write that was read, or cleaned its files.")
        if pending_of(snapshot, Action.INDEXING, self.notes.instant) is None:
            raise _overtaken(names, "Its plan was removed.")
        if not set(names) <= set(snapshot.config.metadata_partitions):
            raise _overtaken(names, "The index was dropped.")
        now = tuple(slice_ for one in names for slice_ in state.slices(one))
        is_newer = any(one.base_instant > self.notes.base_instant for one in now)
        if is_newer or not covers(state, self.notes.base_instant, self._replaced(), names):
            raise _overtaken(names, "The metadata table was compacted meanwhile.")


def _begin(context: Context, partitions: Sequence[str]) -> _Refresh:
    """Steps `index-refresh.lock` to `index-refresh.unlock`."""
    with ExitStack() as on_the_way:
        with context.lock.hold() as held:
            snapshot = _without_rivals(context, held, reload_under_lock(context), partitions)
            if not can_swap(snapshot, partitions):
                raise _overtaken(partitions, "The index was dropped.")
            state = load_metadata_table(context.storage, snapshot.config)
            snapshot.times.move_past(state.timeline.active.newest_time())
            # Their results would lie above what takes the place of their sources.
            if withdraw_compactions(state) or withdraw_log_compactions(state):
                snapshot = reload_under_lock(context)
                state = load_metadata_table(context.storage, snapshot.config)
            if state.uncertain():
                raise _overtaken(partitions, f"{state.uncertain()[0]} has not ended.")
            base_instant = snapshot.times.next()
            plan = encode_indexing_plan(_plan(snapshot, partitions))
            published = publish_in(context, held, snapshot, Action.INDEXING, plan, claims=True)
            assert published.attempt is not None
            attempt = on_the_way.enter_context(published.attempt)
            slices = tuple(one for name in partitions for one in snapshot.metadata.slices(name))
            notes = _notes(snapshot, published.instant, base_instant, partitions, slices)
            write_notes(context.storage, notes)
        to_inflight(context, attempt)
        on_the_way.pop_all()
    return _Refresh(context, attempt, snapshot, notes, slices)


def _without_rivals(
    context: Context, held: HeldLock, snapshot: Snapshot, partitions: Sequence[str]
) -> Snapshot:
    """Step `index-refresh.rivals`: the table without plans of the same that no process works on."""
    for files, names in builds_on(snapshot.timeline.active):
        if not set(names) & set(partitions):
            continue
        ledger = snapshot.ledger(files.instant.requested)
        live = working_attempt(context, ledger, files)
        if live is not None:
            raise held_elsewhere(files.instant.requested, str(live))
        append_cancelled(context, ledger, Action.INDEXING, PlanScope(), reason=SUPERSEDED)
        end_build(context, held, snapshot, files)
        snapshot = reload_under_lock(context)
    return snapshot


def _notes(
    snapshot: Snapshot,
    instant: str,
    base_instant: str,
    partitions: Sequence[str],
    slices: Sequence[FileSlice],
) -> BuildNotes:
    _, pending = base_of(snapshot)
    defined = {one.partition: one for one in snapshot.definitions}
    counts: dict[str, int] = {}
    for name in partitions:
        counts |= _counts([one for one in slices if one.partition == name], name)
    return BuildNotes(
        instant=instant,
        partitions=tuple(partitions),
        columns=defined[COLUMN_STATS].columns if COLUMN_STATS in partitions else (),
        is_partitioned=RECORD_INDEX in partitions and defined[RECORD_INDEX].is_partitioned,
        upto=newest_write(snapshot) or "",
        pending=pending,
        group_counts=counts,
        base_instant=base_instant,
    )


def _counts(slices: Sequence[FileSlice], partition: str) -> dict[str, int]:
    """How many file groups each shard of a partition has."""
    found = Counter(one.file_id.rsplit("-", 2)[0] for one in slices)
    return {f"{partition}/{shard}": count for shard, count in found.items()}


def _plan(snapshot: Snapshot, partitions: Sequence[str]) -> IndexPlan:
    return IndexPlan(
        index_partition_infos=tuple(
            IndexPartition(
                metadata_partition_path=one,
                index_upto_instant=newest_write(snapshot) or "",
                extra_metadata={REFRESH_KEY: "true"},
            )
            for one in partitions
        )
    )


def _overtaken(partitions: Sequence[str], why: str) -> Conflict:
    return Conflict(
        UNDONE,
        what=f"{', '.join(partitions)} was not built anew.",
        why=why,
        now="The old entries are in use as before. Refresh the index again.",
        partition=partitions[0],
    )
