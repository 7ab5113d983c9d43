"""History: what instants have to say, newest first, from the timeline and by range the archive.

Services in history: what plans asked for, and which files cleans and rollbacks removed.

Figures of writes: what a commit, or one of its partitions, has written.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import TypeVar

from lakewarden.engine.formats.instant_metadata import clean, commit, compaction, replace, rollback
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.clean import CleanMetadata, CleanPlan
from lakewarden.engine.formats.instant_metadata.commit import (
    NO_PREVIOUS_COMMIT,
    CommitMetadata,
    WriteStat,
)
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan
from lakewarden.engine.formats.instant_metadata.replace import ClusteringPlan
from lakewarden.engine.formats.instant_metadata.rollback import RollbackMetadata
from lakewarden.engine.kernel.clock import Zone
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.kernel.shown import Row, ShownRows, row_of
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    Action,
    Instant,
    State,
    epoch_ms,
)
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Requested times from one to another, both included; without an end there is no bound."""

    since: str | None = None
    until: str | None = None

    def holds(self, time: str) -> bool:
        after = self.since is None or time >= self.since
        return after and (self.until is None or time <= self.until)


EVER = TimeSpan()


@dataclass(frozen=True, slots=True)
class Recorded:
    """An instant in its newest state with a content: its metadata, or the plan it began with."""

    instant: Instant
    content: bytes
    path: str
    is_archived: bool = False


class History(ShownRows):
    """The instants of a table at one moment; it shows those that are not archived."""

    def __init__(self, storage: Storage, timeline: Timeline) -> None:
        self.storage = storage
        self.timeline = timeline
        self._layout = timeline.active.layout

    def _shown_rows(self) -> Sequence[Row]:
        return [row_of(instant) for instant in reversed(self.timeline.active.instants)]

    @property
    def zone(self) -> Zone:
        """The zone in which the table's instants are written."""
        return self._layout.zone

    def completed(
        self, actions: Collection[Action], span: TimeSpan = EVER, *, archived: bool = False
    ) -> Iterator[Recorded]:
        """Completed instants of some actions with their metadata, newest first."""
        active = (
            self._recorded(instant, instant)
            for instant in reversed(self.timeline.active.completed(actions))
            if span.holds(instant.requested)
        )
        return _newest_first(active, self.archived(actions, span)) if archived else active

    def archived(self, actions: Collection[Action], span: TimeSpan = EVER) -> Iterator[Recorded]:
        """Instants that have left the active timeline, with their metadata, newest first."""
        for row in self._rows(actions, span):
            yield self._of_row(row, row.metadata or b"")

    def planned(
        self, actions: Collection[Action], span: TimeSpan = EVER, *, archived: bool = False
    ) -> Iterator[Recorded]:
        """Instants that began as some actions, with the plan in their request, newest first."""
        active = (
            self._recorded(files.instant, files.requested.instant)
            for files in reversed(self.timeline.active.files)
            if files.started_as in actions
            and files.requested is not None
            and span.holds(files.instant.requested)
        )
        return _newest_first(active, self._archived_plans(actions, span)) if archived else active

    def instants(self, span: TimeSpan, *, archived: bool) -> Iterator[tuple[Instant, bool]]:
        """Instants newest first, each with whether it is archived; nothing is read of them."""
        active = self.timeline.active
        found = {one.key: (one, False) for one in active.instants if span.holds(one.requested)}
        if archived:
            for one in self.timeline.archive.instants(span.since, span.until):
                if active.files_of(one) is None:
                    found[one.key] = (one, True)
        return (found[key] for key in sorted(found, reverse=True))

    def named(self, time: str, actions: Collection[Action]) -> Recorded:
        """The completed instant of that time with its metadata; `InvalidRequest` without one."""
        found = next(self.completed(actions, TimeSpan(time, time), archived=True), None)
        if found is None:
            words = ", ".join(sorted(action.value for action in actions))
            raise InvalidRequest(
                "unknown_instant",
                what=f"The table has no completed instant {time}.",
                why=f"Neither the active timeline nor the archive has it as {words}.",
                now="CALL show_timeline(showArchived => true) lists all.",
                instant=time,
            )
        return found

    def epoch_ms(self, time: str | None) -> int | None:
        """The moment of a time of this timeline; None where it is no date."""
        return None if time is None else epoch_ms(time, self._layout.zone)

    def _rows(self, actions: Collection[Action], span: TimeSpan) -> Iterator[ArchivedInstant]:
        for row in self.timeline.archive.rows(actions, span.since, span.until):
            if self.timeline.active.files_of(row.instant) is None:
                yield row

    def _archived_plans(self, actions: Collection[Action], span: TimeSpan) -> Iterator[Recorded]:
        for row in self._rows({action.completed_as for action in actions}, span):
            if row.plan is not None:
                yield self._of_row(row, row.plan)

    def _recorded(self, instant: Instant, file: Instant) -> Recorded:
        active = self.timeline.active
        return Recorded(instant, active.read(file), active.path(file))

    def _of_row(self, row: ArchivedInstant, content: bytes) -> Recorded:
        name = self._layout.file_name(row.instant)
        return Recorded(row.instant, content, f"{self._layout.history_folder} ({name})", True)


def state_word(instant: Instant) -> str:
    """The state of an instant as Hudi spells it."""
    return State(instant.state).name


def _newest_first(*parts: Iterator[Recorded]) -> Iterator[Recorded]:
    return merge(*parts, key=lambda one: one.instant.key, reverse=True)


Plan = TypeVar("Plan")


def compaction_plans(history: History) -> Iterator[tuple[Instant, CompactionPlan | None]]:
    """The compactions on the active timeline, newest first; no plan where it is torn."""
    for recorded in history.planned((Action.COMPACTION,)):
        yield recorded.instant, _whole(compaction.decode_plan, recorded)


def clustering_plans(history: History) -> Iterator[tuple[Instant, ClusteringPlan | None]]:
    """The clusterings on the active timeline, newest first.

    Before version 8 they began as replace commits, as overwrites of partitions do, which have no
    plan and are none.
    """
    for recorded in history.planned((Action.CLUSTERING, Action.REPLACE_COMMIT)):
        is_clustering = recorded.instant.action is Action.CLUSTERING
        request = _whole(replace.decode_plan, recorded) if recorded.content else None
        plan = None if request is None else request.clustering_plan
        if plan is not None or is_clustering:
            yield recorded.instant, plan


def clean_plans(history: History, *, archived: bool) -> Iterator[tuple[Instant, CleanPlan | None]]:
    """The cleans, planned, under way or done, newest first."""
    for recorded in history.planned((Action.CLEAN,), EVER, archived=archived):
        yield recorded.instant, _whole(clean.decode_plan, recorded)


def _whole(decode: Callable[[bytes, str], Plan], recorded: Recorded) -> Plan | None:
    try:
        return decode(recorded.content, recorded.path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBackFile:
    """A file that a rollback was to remove, and whether it did."""

    instant: str
    undone: str
    partition: str
    file: str
    succeeded: bool


def rollbacks(history: History) -> Iterator[tuple[str, RollbackMetadata]]:
    """The completed rollbacks on the active timeline, newest first."""
    for recorded in history.completed((Action.ROLLBACK,)):
        yield recorded.instant.requested, _decoded(recorded)


def removals(history: History, instant: str) -> Iterator[RolledBackFile]:
    """What a completed rollback has done, file by file."""
    metadata = _decoded(history.named(instant, (Action.ROLLBACK,)))
    undone = ", ".join(metadata.commits_rollback)
    for partition in sorted(metadata.partition_metadata):
        found = metadata.partition_metadata[partition]
        for succeeded, files in (
            (True, found.success_delete_files),
            (False, found.failed_delete_files),
        ):
            for file in files:
                yield RolledBackFile(
                    instant=instant,
                    undone=undone,
                    partition=partition,
                    file=file,
                    succeeded=succeeded,
                )


def _decoded(recorded: Recorded) -> RollbackMetadata:
    return rollback.decode(recorded.content, recorded.path)


def cleans(history: History, *, archived: bool) -> Iterator[tuple[Instant, CleanMetadata]]:
    """The completed cleans with their metadata, newest first."""
    for recorded in history.completed((Action.CLEAN,), EVER, archived=archived):
        yield recorded.instant, clean.decode(recorded.content, recorded.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFigures:
    """Sums over file groups; one without an earlier base file was added, the others updated."""

    files_added: int = 0
    files_updated: int = 0
    bytes_written: int = 0
    records_written: int = 0
    records_inserted: int = 0
    records_updated: int = 0
    records_deleted: int = 0
    errors: int = 0

    @property
    def average_record_bytes(self) -> int:
        """Rounded up; 0 where nothing was written."""
        return -(-self.bytes_written // self.records_written) if self.records_written else 0


def decode_write(recorded: Recorded) -> CommitMetadata:
    """The metadata of a completed write."""
    if recorded.instant.action is Action.REPLACE_COMMIT:
        return replace.decode(recorded.content, recorded.path)
    return commit.decode(recorded.content, recorded.path)


def stats_of(metadata: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    """The write stats with their partitions, in the order of partitions and file ids."""
    for partition in sorted(metadata.partition_to_write_stats):
        stats = metadata.partition_to_write_stats[partition]
        for stat in sorted(stats, key=lambda one: (one.file_id, one.path or "")):
            yield partition, stat


def figures_of(stats: Iterable[WriteStat]) -> WriteFigures:
    """The sums of some write stats."""
    known = list(stats)
    added = sum(stat.prev_commit in (None, NO_PREVIOUS_COMMIT) for stat in known)
    return WriteFigures(
        files_added=added,
        files_updated=len(known) - added,
        bytes_written=sum(stat.total_write_bytes for stat in known),
        records_written=sum(stat.num_writes for stat in known),
        records_inserted=sum(stat.num_inserts for stat in known),
        records_updated=sum(stat.num_update_writes for stat in known),
        records_deleted=sum(stat.num_deletes for stat in known),
        errors=sum(stat.total_write_errors for stat in known),
    )


def figures_of_write(metadata: CommitMetadata) -> WriteFigures:
    """The sums of a whole write."""
    return figures_of(stat for _, stat in stats_of(metadata))


@dataclass(frozen=True, slots=True)
class Lead:
    """How far a table is ahead of another one, or behind it; `instants` are the difference."""

    is_ahead: bool
    instants: tuple[str, ...]


def compare(one: History, other: History) -> Lead:
    """The first table beside the second, by their newest writes."""
    ours, theirs = _newest(one), _newest(other)
    if theirs > ours:
        return Lead(False, _after(other, ours))
    return Lead(True, _after(one, theirs))


def _newest(history: History) -> str:
    """The newest completed write; "" sorts before all, for a table that has none."""
    writes = history.timeline.active.completed(COMPLETED_WRITES)
    return max((instant.requested for instant in writes), default="")


def _after(history: History, time: str) -> tuple[str, ...]:
    """The writes requested after a time, the archived ones of that range, too."""
    active = [one.requested for one in history.timeline.active.completed(COMPLETED_WRITES)]
    archived = [
        one.requested
        for one in history.timeline.archive.instants(since=time)
        if one.action in COMPLETED_WRITES
    ]
    return tuple(sorted({one for one in (*active, *archived) if one > time}))
