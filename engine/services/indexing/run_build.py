"""Carrying out a build: base files, catching up, and the commit that makes its partitions ready.

A build whose process died is resumed by the next attempt at its plan: file groups that are finished
are kept. One that Java has started and left is superseded, since nothing tells which of its
files are whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.formats.instant_metadata import indexing
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.indexing import IndexMetadata, IndexPartition
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, LakewardenError
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.initialise import base_stat, begin_initial
from lakewarden.engine.metadata.reading.shards import file_groups_by_shard
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.metadata.writing.builds import (
    BuildDone,
    BuildNotes,
    being_built,
    finished_groups,
    forget_groups,
    forget_notes,
    note_base,
    read_notes,
    write_notes,
)
from lakewarden.engine.metadata.writing.instants import commit_content, complete_now
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.run.processes import stopping_on_signal
from lakewarden.engine.services.indexing.base_files import BaseWriter, damaged
from lakewarden.engine.services.indexing.catch_up import (
    CAUGHT_UP_KEY,
    CatchUp,
    Reading,
    taken_from_base,
)
from lakewarden.engine.services.indexing.gather import newest_write
from lakewarden.engine.services.indexing.refusals import (
    MadeElsewhereError,
    damaged_file,
    held_elsewhere,
    undone_build,
    unknown_build,
)
from lakewarden.engine.services.indexing.schedule_build import (
    prepare,
    publish_build,
    refuse_impossible,
    supersede_in,
    wanted_of,
)
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import METADATA_FOLDER
from lakewarden.engine.timeline.heartbeats import delete_standard_heartbeat, write_first_heartbeat
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts.attempt import Attempt, complete
from lakewarden.engine.transaction.attempts.take_over import (
    pending_of,
    take_over,
    working_attempt,
)
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.state.context import (
    Context,
    load_for_writing,
    publish_index,
    reload_under_lock,
)
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from lakewarden.engine.transaction.sweep.sweep import clean_up_instant

# Writers that do not report to builds may complete something before each completion: in the last
# turn their files are read under the lock, so that a build ends beside any writers.
_TURNS_MAX = 20


def run_build(context: Context, instant: str, workers: Executor | None = None) -> BuildDone:
    """Carry out a plan, ours or Java's; safe to repeat, and to be called by any process.

    `workers` read the table, if others than those of the context shall.

    Steps of `index-build`: start, groups, base, base-lock, base-reload, base-check, base-complete,
    catch-up. Then those of `index-completion`. A crash anywhere leaves a build that the next
    attempt resumes.
    """
    with stopping_on_signal():
        taken = _instant_to_run(context, instant)
        if isinstance(taken, BuildDone):
            return taken
        started = take_over(context, Action.INDEXING, taken)
        if started.live is not None:
            raise held_elsewhere(taken, str(started.live))
        if started.attempt is None:
            return _ended(context, taken)
        try:
            with started.attempt as attempt, _leaving_nothing(context, attempt):
                done = _Run(context, attempt, workers or context.ports.executor).to_the_end()
        except MadeElsewhereError as made:
            done = made.done
    return done if taken == instant else _instead_of(done, instant)


def pending_indexing(snapshot: Snapshot) -> tuple[str, ...]:
    """The plans of builds that have not ended, oldest first."""
    return tuple(one.requested for one in snapshot.timeline.active.pending((Action.INDEXING,)))


@dataclass(frozen=True, slots=True)
class _Run:
    """One attempt at one build."""

    context: Context
    attempt: Attempt
    workers: Executor

    def to_the_end(self) -> BuildDone:
        notes = self._with_groups()
        if not notes.has_base:
            self._give_sign(notes)
            # A clean may remove files that were listed, and that no read needs any more.
            retrying_view(
                partial(load_for_writing, self.context), partial(self._write_base, notes=notes)
            )
            notes = self._publish_base(notes)
        catch_up = CatchUp(self.context, self.attempt, notes)
        done, turns = None, 0
        while done is None:
            catch_up.until_nothing_waits()
            turns += 1
            is_last = turns >= _TURNS_MAX
            at = Reading.UNDER_LOCK if is_last else Reading.NOTHING_UNDER_LOCK
            done = self._complete(notes, catch_up, at)
        return done

    def _with_groups(self) -> BuildNotes:
        """Step `index-build.groups`: what the plan lacks of file groups, and of its instants."""
        with self.context.lock.hold() as held:
            self.attempt.check_claim()
            snapshot = reload_under_lock(self.context)
            notes = read_notes(self.context.storage, self.attempt.instant)
            state = load_metadata_table(self.context.storage, snapshot.config)
            is_whole = notes is not None and _is_completed(state, notes.groups_instant)
            if notes is None or not is_whole:
                forget_notes(self.context.storage, self.attempt.instant)
                files = pending_of(snapshot, Action.INDEXING, self.attempt.instant)
                assert files is not None
                wanted = wanted_of(snapshot, files)
                refuse_impossible(self.context, snapshot, wanted)
                return prepare(self.context, held, snapshot, self.attempt.instant, wanted)
            self._assert_there(held, snapshot, notes)
            if notes.has_base or _is_completed(state, notes.base_instant):
                return note_base(self.context.storage, notes)
            return self._with_base_instant(state, notes)

    def _with_base_instant(self, state: MetadataTable, notes: BuildNotes) -> BuildNotes:
        """Java may have rolled the instant of the base files back: then they are made anew."""
        groups = finished_groups(self.context.storage, notes.instant)
        is_there = state.deltacommit(notes.base_instant) is not None
        if is_there and not any(damaged(self.context.storage, groups)):
            return notes
        fresh = replace(notes, base_instant=begin_initial(state))
        forget_groups(self.context.storage, notes.instant)
        write_notes(self.context.storage, fresh)
        return fresh

    def _write_base(self, snapshot: Snapshot, notes: BuildNotes) -> None:
        with self._blaming_what_is_gone(notes):
            BaseWriter(self.context, self.attempt, snapshot, notes, self.workers).write()
            groups = finished_groups(self.context.storage, notes.instant)
            bad = next(damaged(self.context.storage, groups), None)
            if bad is not None:
                raise damaged_file(notes, bad)

    @contextmanager
    def _blaming_what_is_gone(self, notes: BuildNotes) -> Iterator[None]:
        """A file that is missing because the build was undone is reported as that."""
        try:
            yield
        except CorruptTable:
            with self.context.lock.hold() as held:
                self.attempt.check_claim()
                self._assert_there(held, reload_under_lock(self.context), notes)
            raise

    def _publish_base(self, notes: BuildNotes) -> BuildNotes:
        """Steps `index-build.base-lock` to `index-build.base-complete`."""
        groups = finished_groups(self.context.storage, notes.instant)
        with self.context.lock.hold() as held:
            self.attempt.check_claim()
            snapshot = reload_under_lock(self.context)
            self._assert_there(held, snapshot, notes)
            state = load_metadata_table(self.context.storage, snapshot.config)
            snapshot.times.move_past(state.timeline.active.newest_time())
            stats = [
                base_stat(f"{one.partition}/{one.name}", one.file_id, one.entries, one.size_bytes)
                for one in groups.values()
                if one.name
            ]
            content = commit_content(stats, Operation.BULK_INSERT_PREPPED)
            complete_now(state, notes.base_instant, content, snapshot.times)
            return note_base(self.context.storage, notes)

    def _complete(self, notes: BuildNotes, catch_up: CatchUp, at: Reading) -> BuildDone | None:
        """Make the partitions ready; None if something is to be waited for, or read, first.

        Steps of `index-completion`: lock, own-ledger, reload, check, catch-up, append, ready,
        publish, unlock, tidy. A crash before `index-completion.append` leaves the build as it was;
        after it the index is ready whatever happens, and anyone publishes it.
        """
        with self.context.lock.hold() as held:
            ledger = self.attempt.check_claim()
            snapshot = reload_under_lock(self.context, ledger)
            self._assert_there(held, snapshot, notes)
            if catch_up.report(snapshot, at) is not None:
                return None
            newest = newest_write(snapshot) or notes.upto
            content = completed_content(notes, newest)
            publish = partial(publish_index, self.context)
            complete(self.context, held, snapshot, ledger, content, before_publish=publish)
        groups = finished_groups(self.context.storage, notes.instant)
        self.attempt.stop_heartbeats()
        clean_up_instant(self.context.storage, read_ledger(self.context.storage, notes.instant))
        delete_standard_heartbeat(self._metadata, notes.base_instant)
        forget_notes(self.context.storage, notes.instant)
        return BuildDone(
            instant=notes.instant,
            partitions=notes.partitions,
            upto=notes.upto,
            caught_up_to=newest,
            records_count=sum(one.entries for one in groups.values()),
        )

    def _assert_there(self, held: HeldLock, snapshot: Snapshot, notes: BuildNotes) -> None:
        """Steps `index-build.base-check` and `index-completion.check`: nothing of it has gone.

        A rollback or restore of what the base holds takes the partitions away, and a writer of
        Java's makes them itself if it wants them. What is left of the build ends then, under this
        hold of the lock.
        """
        building = snapshot.config.metadata_partitions_inflight
        gone = [one for one in notes.partitions if one not in building]
        state = load_metadata_table(self.context.storage, snapshot.config)
        lost = gone or [one for one in notes.partitions if not _has_groups(state, notes, one)]
        undone = taken_from_base(snapshot, notes)
        if not lost and undone is None:
            return
        files = pending_of(snapshot, Action.INDEXING, notes.instant)
        why = (
            f"{undone} undid a write that it holds, or cleaned what it reads."
            if undone
            else f"The file groups of {lost[0]} are gone."
        )
        own = read_ledger(self.context.storage, notes.instant)
        append_cancelled(self.context, own, Action.INDEXING, PlanScope(), reason=why)
        if files is not None:
            end_build(self.context, held, snapshot, files)
        if gone and undone is None and set(gone) <= set(snapshot.config.metadata_partitions):
            raise MadeElsewhereError(_satisfied(snapshot, notes.instant, notes.partitions))
        raise undone_build(notes, why)

    def _give_sign(self, notes: BuildNotes) -> None:
        """Java rolls an instant of the metadata table back that gives no sign."""
        write_first_heartbeat(self._metadata, notes.base_instant, "")

    @property
    def _metadata(self) -> Storage:
        return self.context.storage.below(METADATA_FOLDER)


def _instant_to_run(context: Context, instant: str) -> str | BuildDone:
    """The plan to carry out: the one that is named, or another one in place of one of Java's.

    Step `index-build.start`. What Java has started is taken for alive as long as Java's own builds
    may go without a sign.
    """
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        files = pending_of(snapshot, Action.INDEXING, instant)
        if files is None:
            return _ended(context, instant)
        ledger = snapshot.ledger(instant)
        wanted = wanted_of(snapshot, files)
        live = working_attempt(context, ledger, files)
        if live is not None:
            raise held_elsewhere(instant, str(live))
        if ledger.last_claim is not None or files.inflight is None:
            ready = snapshot.config.metadata_partitions
            if wanted and all(one.partition in ready for one in wanted):
                return _end_satisfied(context, held, snapshot, files)
            return instant
        refuse_impossible(context, snapshot, wanted)
        snapshot = supersede_in(context, held, snapshot, files)
        if not wanted:
            raise unknown_build(instant)
        return publish_build(context, held, snapshot, wanted).instant


def _end_satisfied(
    context: Context, held: HeldLock, snapshot: Snapshot, files: InstantFiles
) -> BuildDone:
    """End a plan whose partitions another one has made; they stay as they are."""
    instant = files.instant.requested
    names = tuple(one.partition for one in wanted_of(snapshot, files))
    ledger = snapshot.ledger(instant)
    append_cancelled(context, ledger, Action.INDEXING, PlanScope(), reason="Its index is ready.")
    end_build(context, held, snapshot, files)
    return _satisfied(snapshot, instant, names)


def _satisfied(snapshot: Snapshot, instant: str, names: tuple[str, ...]) -> BuildDone:
    newest = newest_write(snapshot) or ""
    return BuildDone(
        instant=instant,
        partitions=names,
        upto=newest,
        caught_up_to=newest,
        was_completed_before=True,
    )


def _ended(context: Context, instant: str) -> BuildDone:
    """What has become of a build that is not pending: done, or no more."""
    active = load_for_writing(context).timeline.active
    for one in active.completed((Action.INDEXING,)):
        if one.requested == instant:
            infos = indexing.decode(active.read(one), active.path(one)).index_partition_infos
            extra = infos[0].extra_metadata if infos else {}
            return BuildDone(
                instant=instant,
                partitions=tuple(info.metadata_partition_path or "" for info in infos),
                upto=(infos[0].index_upto_instant or "") if infos else "",
                caught_up_to=extra.get(CAUGHT_UP_KEY, ""),
                was_completed_before=True,
            )
    raise unknown_build(instant)


@contextmanager
def _leaving_nothing(context: Context, attempt: Attempt) -> Iterator[None]:
    """What an attempt that has lost its build wrote last goes as well.

    A build of what cannot be indexed is ended; after any other failure it waits for the next one.
    """
    try:
        with aborting_on_error(context, attempt):
            yield
    except InvalidRequest as refusal:
        end_attempt(context, attempt, str(refusal))
        raise
    except LakewardenError:
        ledger = read_ledger(context.storage, attempt.instant)
        if ledger.ends_in is LedgerEnd.CANCELLED:
            forget_notes(context.storage, attempt.instant)
            remove_strays(context)
        raise


def end_attempt(context: Context, attempt: Attempt, reason: str) -> None:
    """End the build that an attempt is at, unless it has committed."""
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        files = pending_of(snapshot, Action.INDEXING, attempt.instant)
        own = read_ledger(context.storage, attempt.instant)
        ended = append_cancelled(context, own, Action.INDEXING, PlanScope(), reason=reason)
        if files is not None and ended.ends_in is LedgerEnd.CANCELLED:
            end_build(context, held, snapshot, files)


def remove_strays(context: Context) -> None:
    """The folders of partitions that no build and no property knows."""
    with context.lock.hold():
        snapshot = reload_under_lock(context)
        if not snapshot.config.metadata_partitions:
            return
        state = load_metadata_table(context.storage, snapshot.config)
        known = {*snapshot.config.metadata_partitions, *being_built(state)}
        for partition in set(state.partitions()) - known:
            state.storage.delete_folder(partition)


def completed_content(notes: BuildNotes, newest: str) -> bytes:
    """The content of the completed file of a build."""
    infos = tuple(
        IndexPartition(
            metadata_partition_path=one,
            index_upto_instant=notes.upto,
            extra_metadata={CAUGHT_UP_KEY: newest},
        )
        for one in notes.partitions
    )
    return indexing.encode(IndexMetadata(index_partition_infos=infos))


def _is_completed(state: MetadataTable, instant: str) -> bool:
    files = state.started(instant, Action.DELTA_COMMIT)
    return files is not None and files.completed is not None


def _has_groups(state: MetadataTable, notes: BuildNotes, partition: str) -> bool:
    """Whether a partition has all file groups that it was made with; Java may have removed some."""
    there = file_groups_by_shard(state.files(partition))
    wanted = {
        key.removeprefix(f"{partition}/"): count
        for key, count in notes.group_counts.items()
        if key.startswith(f"{partition}/")
    }
    return all(len(there.get(shard, ())) >= count for shard, count in wanted.items())


def _instead_of(done: BuildDone, instant: str) -> BuildDone:
    return replace(done, superseded=instant)
