"""Catching up: what completed after the base instant, and has not reported to the build, reports.

Most writes report themselves. Left are those that had gathered before the plan was there, those of
engines that do not look for builds, and what was pending when the plan was made: a build waits for
these, so that none of them completes unseen once the index is ready.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.file_names import BaseFile, parse_file_name
from lakewarden.engine.formats.instant_metadata import clean, rollback
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Setting, whole_number
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.metadata.entries.row_indexes import row_indexes
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    RECORD_INDEX,
    load_metadata_table,
)
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    caught_up,
    note_caught_up,
)
from lakewarden.engine.metadata.writing.deltacommit import reported_to, write_late
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

    def report(self, snapshot: Snapshot, *, is_locked: bool = False) -> InstantFiles | None:
        """Report what is to be reported, up to the first instant that is not over; that one."""
        known = caught_up(self.context.storage, self.notes.instant) | self.settled
        for files in to_catch_up_with(snapshot, self.notes):
            if files.instant.requested in known:
                continue
            if not files.instant.is_completed:
                return files
            self._report(snapshot, files.instant, is_locked=is_locked)
        return None

    def _report(self, snapshot: Snapshot, instant: Instant, *, is_locked: bool) -> None:
        """One instant, in the place that its own deltacommit has; none is made twice."""
        reported = reported_to(snapshot.metadata, instant.requested, self.notes.groups_instant)
        lacking = [one for one in self.notes.partitions if one not in (reported or ())]
        if not lacking or instant.action is Action.ROLLBACK:
            self.settled.add(instant.requested)
            return
        if reported is not None:
            change = self._changes(snapshot).of(instant)
            # What was said of the instants before belongs to what is known now.
            state = load_metadata_table(self.context.storage, snapshot.config)
            content = content_of(state, snapshot.definitions, change)
            own = {one: content.of(one) for one in lacking}
            number, ports = self.attempt.number, self.context.ports
            write_late(state, instant.requested, own, number, ports)
        elif is_locked:
            self._report_all(snapshot, instant)
        else:
            with self.context.lock.hold():
                self._report_all(reload_under_lock(self.context), instant)
        note_caught_up(self.context.storage, self.notes.instant, instant.requested)
        self.settled.add(instant.requested)

    def _report_all(self, snapshot: Snapshot, instant: Instant) -> None:
        """What a writer has not reported to the metadata table at all."""
        change = self._changes(snapshot).of(instant)
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
    """What is not in the base, oldest first; of what has not completed, what the build waits for.

    That is what was pending with the plan, but for plans of services that have not started.
    """
    for files in snapshot.timeline.active.files:
        one = files.instant
        was_pending = one.requested in notes.pending
        is_of_files = one.action.is_write or one.action in (Action.CLEAN, Action.ROLLBACK)
        if not is_of_files or not (was_pending or one.requested > notes.upto):
            continue
        has_started = files.inflight is not None or files.started_as in INGESTION
        if one.is_completed or (was_pending and has_started):
            yield files


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
