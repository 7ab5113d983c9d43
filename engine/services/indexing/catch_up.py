"""Catching up: what completed after the base instant, and has not reported to the build, reports.

Most writes report themselves. Left are those that had gathered before the plan was there, those of
engines that do not look for builds, and what was pending when the plan was made: a build waits for
these, so that none of them completes unseen once the index is ready.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from lakewarden.engine.file_groups.file_names import BaseFile, parse_file_name
from lakewarden.engine.formats.instant_metadata import clean, rollback
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Setting, whole_number
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.metadata.entries.row_indexes import row_indexes
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    load_metadata_table,
)
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    caught_up,
    note_caught_up,
)
from lakewarden.engine.metadata.writing.deltacommit import reported_to, write_late
from lakewarden.engine.metadata.writing.widening import widen_later
from lakewarden.engine.metadata.writing.writer import write_change
from lakewarden.engine.services.indexing.past import PastChanges
from lakewarden.engine.services.retention.file_removal import finish_pending
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.plan_scope import INGESTION

CHECK_TIMEOUT_SECONDS = Setting(
    "hoodie.metadata.index.check.timeout.seconds",
    900,
    whole_number,
    "How long a build of an index waits for instants that were pending when it was planned",
)
INDEXING_SETTINGS: tuple[Setting[object], ...] = (CHECK_TIMEOUT_SECONDS,)
# How long it rests between two looks: a tenth of what it has waited, so that a long wait is cheap.
RESTS_SECONDS = (1.0, 15.0)
# In the extra metadata of a completed partition: the newest write that it knows of.
CAUGHT_UP_KEY = "lakewarden.caughtUpTo"

# So many instants may say something of the table's partitions in one hold of the lock.
_AT_ONCE_MAX = 8
# What an attempt widens has a number of its own; writers have that before the first.
_WIDENS_FROM = 2


class Reading(Enum):
    """Which files may be read to find out what an instant would have reported."""

    FREELY = auto()
    # Under the lock none: what needs them has to wait until it is given back.
    NOTHING_UNDER_LOCK = auto()
    UNDER_LOCK = auto()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The partitions that lack what an instant has to say of files, and of partitions."""

    files: tuple[str, ...]
    partitions: tuple[str, ...]


@dataclass(slots=True)
class CatchUp:
    """What one attempt has caught up with, and what it waits for."""

    context: Context
    attempt: Attempt
    notes: BuildNotes
    # What needs no second look.
    settled: set[str] = field(default_factory=set)

    def until_nothing_waits(self) -> None:
        """Step `index-build.catch-up`: oldest first, waiting for what is pending, without the lock.

        What others have left is brought to its end, cleans too. What does not end in time is named,
        and the build stays as it is for the next attempt.
        """
        clock = self.context.ports.clock
        began = clock.elapsed_seconds()
        until = began + self.context.settings[CHECK_TIMEOUT_SECONDS]
        while True:
            self.attempt.assert_mine()
            snapshot = load_for_writing(self.context)
            waiting = self.report(snapshot)
            if waiting is None:
                return
            self.attempt.tell(f"waits for {waiting.instant.requested}")
            if clock.elapsed_seconds() >= until:
                raise waits_for(self.notes, waiting)
            recover_failed_instants(self.context)
            if waiting.instant.action is Action.CLEAN:
                finish_pending(self.context)
            if load_for_writing(self.context).pending(waiting.instant.requested) is not None:
                clock.sleep(_rest_after(clock.elapsed_seconds() - began))

    def report(self, snapshot: Snapshot, at: Reading = Reading.FREELY) -> InstantFiles | None:
        """Report what is to be reported, up to the first instant that cannot be yet; that one.

        That is one which is not over, or whose files are not to be read in this hold of the lock,
        or with which there would be too much to say in it.
        """
        known = caught_up(self.context.storage, self.notes.instant) | self.settled
        of_partitions: dict[Instant, tuple[str, ...]] = {}
        waiting = None
        for files in to_catch_up_with(snapshot, self.notes):
            one = files.instant
            if one.requested in known:
                continue
            is_much = at is Reading.NOTHING_UNDER_LOCK and len(of_partitions) == _AT_ONCE_MAX
            wanted = self._report(snapshot, one, at) if one.is_completed and not is_much else None
            if wanted is None:
                waiting = files
                break
            if wanted:
                of_partitions[one] = wanted
        self._report_partitions(snapshot, of_partitions)
        return waiting

    def _report(self, snapshot: Snapshot, one: Instant, at: Reading) -> tuple[str, ...] | None:
        """What one instant has to say of files, in the place that its own deltacommit has.

        The answer are the partitions that lack no more than what it has to say of the table's
        partitions, which is said of several instants at once; None if it has to wait.
        """
        requested = one.requested
        reported = reported_to(snapshot.metadata, requested, self.notes.groups_instant)
        wanted = self._wanted(snapshot, reported or frozenset())
        if one.action is not Action.ROLLBACK and (wanted.files or wanted.partitions):
            if not wanted.files and reported is not None:
                return wanted.partitions
            if at is Reading.NOTHING_UNDER_LOCK:
                return None
            change = self._changes(snapshot).of(one)
            if reported is not None:
                self._report_late(snapshot, change, wanted)
            elif at is Reading.UNDER_LOCK:
                self._report_all(snapshot, change)
            elif not self._report_all_locked(snapshot, one, change):
                return ()
            note_caught_up(self.context.storage, self.notes.instant, requested)
        self.settled.add(requested)
        return ()

    def _report_partitions(
        self, snapshot: Snapshot, wanted: Mapping[Instant, tuple[str, ...]]
    ) -> None:
        """What writes have to say of the table's partitions, where they have said the rest.

        What they have to say is worked out once for all that have touched the same partitions.
        """
        if not wanted:
            return
        # What was said of the instants before belongs to what is known now.
        state = load_metadata_table(self.context.storage, snapshot.config)
        changes = self._changes(snapshot)
        touched = {one: changes.touched(one) for one in wanted}
        names = dict.fromkeys(name for own in wanted.values() for name in own)
        said = {
            partitions: {
                name: content_of(state, snapshot.definitions, change).of(name) for name in names
            }
            for partitions, change in changes.of_partitions(touched).items()
        }
        number, ports = self.attempt.number, self.context.ports
        for instant, own in wanted.items():
            late = {name: said[touched[instant]][name] for name in own}
            write_late(state, instant.requested, late, (1, number), ports)
            note_caught_up(self.context.storage, self.notes.instant, instant.requested)
            self.settled.add(instant.requested)

    def _wanted(self, snapshot: Snapshot, reported: frozenset[str]) -> _Wanted:
        """What is lacking of an instant that has reported to some partitions."""
        lacking = [one for one in self.notes.partitions if one not in reported]
        of_partitions = [one for one in lacking if one == PARTITION_STATS]
        # Writers do not say these: they are made from those of all files, some of which the builder
        # has to catch up with first.
        nothing = TableChange(instant="")
        known = content_of(snapshot.metadata, snapshot.definitions, nothing)
        of_partitions += filter(known.has_partitions, self.notes.partitions)
        of_files = [one for one in lacking if one != PARTITION_STATS]
        return _Wanted(tuple(of_files), tuple(of_partitions))

    def _report_late(self, snapshot: Snapshot, change: TableChange, wanted: _Wanted) -> None:
        # What was said of the instants before belongs to what is known now.
        state = load_metadata_table(self.context.storage, snapshot.config)
        content = content_of(state, snapshot.definitions, change)
        own = {one: content.of(one) for one in dict.fromkeys((*wanted.files, *wanted.partitions))}
        number, ports = self.attempt.number, self.context.ports
        widen_later(content, wanted.partitions, ports, by=_WIDENS_FROM + number)
        write_late(state, change.instant, own, (1, number), ports)

    def _report_all_locked(self, seen: Snapshot, instant: Instant, change: TableChange) -> bool:
        """Under a hold of its own; False if the table has changed so that it is to be made anew."""
        with self.context.lock.hold():
            snapshot = reload_under_lock(self.context)
            is_there = instant in snapshot.timeline.active.completed()
            if not is_there or snapshot.definitions != seen.definitions:
                return False
            self._report_all(snapshot, change)
        return True

    def _report_all(self, snapshot: Snapshot, change: TableChange) -> None:
        """What a writer has not reported to the metadata table at all."""
        write_change(
            snapshot.metadata,
            snapshot.definitions,
            change,
            snapshot.times,
            self.context.ports,
            self.context.settings,
        )

    def _changes(self, snapshot: Snapshot) -> PastChanges:
        defined = {one.partition: one for one in snapshot.definitions}
        columns = defined[COLUMN_STATS].columns if COLUMN_STATS in defined else ()
        return PastChanges(
            snapshot,
            self.context.ports.executor,
            columns=columns,
            tracks_keys=RECORD_INDEX in defined,
            indexes=row_indexes(defined.values(), snapshot.schema().columns, self.context.settings),
        )


def _rest_after(waited_seconds: float) -> float:
    shortest, longest = RESTS_SECONDS
    return min(max(shortest, waited_seconds / 10), longest)


def to_catch_up_with(snapshot: Snapshot, notes: BuildNotes) -> Iterator[InstantFiles]:
    """What the build waits for, oldest first, then what is not in the base, by completion.

    It waits for what was pending with the plan, but for plans of services that have not started.
    What partitions have at an instant is known once what completed before has been caught up with.
    """
    for files in sorted(snapshot.timeline.active.files, key=_completion):
        one = files.instant
        was_pending = one.requested in notes.pending
        is_of_files = one.action.is_write or one.action in (Action.CLEAN, Action.ROLLBACK)
        if not is_of_files or not (was_pending or one.requested > notes.upto):
            continue
        has_started = files.inflight is not None or files.started_as in INGESTION
        if one.is_completed or (was_pending and has_started):
            yield files


def _completion(files: InstantFiles) -> tuple[bool, str]:
    completed = files.instant.completed
    return completed is not None, completed or files.instant.requested


def taken_from_base(snapshot: Snapshot, notes: BuildNotes) -> str | None:
    """What has undone, since the plan, a write that the base holds, or cleaned what it reads."""
    active = snapshot.timeline.active
    for one in active.completed((Action.CLEAN,)):
        if one.requested > notes.instant or one.requested in notes.pending:
            metadata = clean.decode(active.read(one), active.path(one))
            for partition, gone in metadata.partition_metadata.items():
                names = (*gone.success_delete_files, *gone.delete_path_patterns)
                if _has_newest(snapshot, partition, names, notes.upto):
                    return one.requested
    for one in active.completed((Action.RESTORE,)):
        if one.requested > notes.instant:
            return one.requested
    for one in active.completed((Action.ROLLBACK,)):
        if one.requested > notes.instant:
            undone = rollback.decode(active.read(one), active.path(one)).commits_rollback
            if any(name <= notes.upto and name not in notes.pending for name in undone):
                return one.requested
    return None


def _has_newest(snapshot: Snapshot, partition: str, paths: Sequence[str], upto: str) -> bool:
    """Whether some removed files are what their file groups had as of an instant."""
    removed = [parse_file_name(path.rpartition("/")[2], 0) for path in paths]
    gone = [one for one in removed if one is not None and one.instant <= upto]
    if not gone:
        return False
    there = snapshot.source(use_metadata=True).files((partition,)).get(partition, ())
    starts: dict[str, str] = {}
    for file in (*gone, *there):
        if isinstance(file, BaseFile) and file.instant <= upto:
            starts[file.file_id] = max(starts.get(file.file_id, ""), file.instant)
    return any(one.instant >= starts.get(one.file_id, "") for one in gone)


def waits_for(notes: BuildNotes, waiting: InstantFiles) -> Conflict:
    instant = waiting.instant.requested
    return Conflict(
        "index_waits",
        what=f"The index was not completed: it waits for {waiting.started_as.value} {instant}.",
        why="That was pending when the build was planned, and has not ended in time.",
        now=(
            "Run or cancel it if no process works on it, then resume the build: CALL "
            "build_index(op => 'resume', ...)."
        ),
        instant=notes.instant,
        waits_for=instant,
    )
