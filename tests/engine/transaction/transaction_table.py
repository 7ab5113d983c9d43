"""A tiny table in memory, and its writers: what the tests of plans share.

Every writer has its own ports and its own view of the storage, so that one can die or pause while
the others go on. Data files hold one line each: here it matters which files a reader sees.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.file_groups.file_names import PARTITION_METADATA, parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import FileGroupId, file_groups, load_visibility
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.providers.port import LockProvider
from lakewarden.engine.locks.table_lock import Patience, TableLock, open_lock
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.run.processes import ProcessMark
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import IN_TURN, Concurrency
from lakewarden.engine.table.config import PROPERTIES_PATH, load_config
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline, load_active
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.commit import Outcome, Receipt, commit, outputs_of
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker

PROPERTIES = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.recordkey.fields": "k",
}
# One at a time, so that the calls of a run have one order.
ARGUMENTS = {"lakewarden.storage.threads": "1", "lakewarden.clock.skew_max_seconds": "300"}
DEAD_AFTER_MS = 120_001
SWEPT_AFTER_MS = 3_600_001

AnswerT = TypeVar("AnswerT")


class FakeProcesses:
    """One process for each writer, all on one machine; a test says which are gone."""

    def __init__(self, pid: int, gone: set[int]) -> None:
        self._mark = ProcessMark("host", "machine one", pid, "9")
        self._gone = gone

    def mine(self) -> ProcessMark:
        return self._mark

    def is_gone(self, mark: ProcessMark) -> bool:
        return mark.machine == self._mark.machine and mark.pid in self._gone


class Ahead:
    """A clock that is ahead of the others by the same time at every moment."""

    def __init__(self, clock: ManualClock, ahead_ms: int) -> None:
        self._clock = clock
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._ahead_ms

    def elapsed_seconds(self) -> float:
        return self._clock.elapsed_seconds()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


@dataclass(frozen=True, slots=True)
class LastFirst:
    """Calls side by side, of which the last one comes first; all are made, whichever fails."""

    at_once: int = 2

    def answers(self, calls: Sequence[Callable[[], AnswerT]]) -> list[AnswerT]:
        answers = [Future[AnswerT]() for _ in calls]
        for call, answer in reversed(list(zip(calls, answers, strict=True))):
            try:
                answer.set_result(call())
            except Exception as failure:
                answer.set_exception(failure)
        return [answer.result() for answer in answers]


@dataclass
class TransactionTable:
    """A table and its clock."""

    clock: ManualClock = field(default_factory=ManualClock)
    properties: dict[str, str] = field(default_factory=lambda: dict(PROPERTIES))

    def __post_init__(self) -> None:
        self.storage: MemoryStorage = fresh_memory_storage(clock=self.clock)
        self.storage.put(PROPERTIES_PATH, format_properties(self.properties, "made by a test"))
        self._seed = 0
        self.gone: set[int] = set()

    def writer(
        self,
        plan: FaultPlan | None = None,
        *,
        lock: Callable[[], LockProvider] | None = None,
        storage: Callable[[Storage], Storage] | None = None,
        ahead_ms: int = 0,
        concurrency: Concurrency = IN_TURN,
        **arguments: str,
    ) -> "Writer":
        """A writer of its own; with a plan its storage fails accordingly.

        Without another lock all writers share the one that fits the storage. One whose clock is
        ahead takes everybody else for dead.
        """
        self._seed += 1
        own: Storage = self.storage if storage is None else storage(self.storage)
        if plan is not None or concurrency != IN_TURN:
            own = FaultyStorage(own, plan, self.clock, concurrency)
        ports = Ports(
            clock=self.clock if ahead_ms == 0 else Ahead(self.clock, ahead_ms),
            ids=SeededIds(self._seed),
            executor=LocalExecutor(1),
            background=ManualBackground(),
            events=EventLog(),
            processes=FakeProcesses(self._seed, self.gone),
        )
        given = {name.replace("__", "."): value for name, value in arguments.items()}
        settings = Settings.of(arguments={**ARGUMENTS, **given})
        table_lock = open_lock(own, settings, ports)
        if lock is not None:
            table_lock = TableLock(lock, Patience(0), ports)
        return Writer(Context(own, table_lock, ports, settings))

    def timeline(self) -> ActiveTimeline:
        return load_active(self.storage, load_config(self.storage).layout)

    def visible(self) -> frozenset[str]:
        """The base and log files that a reader sees."""
        config = load_config(self.storage)
        timeline = Timeline.load(self.storage, config.layout)
        visibility = load_visibility(timeline.active, timeline, names_decide=False)
        return frozenset(
            file_slice.path(file)
            for partition, files in StorageListing(self.storage).files().items()
            for group in file_groups(partition, files, visibility)
            for file_slice in [group.latest_merged()]
            for file in (file_slice.base_file, *file_slice.log_files)
            if file is not None
        )

    def data_files(self) -> frozenset[str]:
        """All data files there are, seen or not."""
        return frozenset(
            entry.path
            for entry in self.storage.walk("")
            if not entry.path.startswith(".hoodie/") and parse_file_name(entry.name, 1) is not None
        )

    def committed_files(self) -> frozenset[str]:
        """All data files that completed instants name."""
        active = self.timeline()
        named: set[str] = set()
        for instant in active.completed():
            is_replace = instant.action is Action.REPLACE_COMMIT
            decode = replace_payload.decode if is_replace else commit_payload.decode
            named |= outputs_of(decode(active.read(instant), active.path(instant))).keys()
        return frozenset(named)

    def traces(self, instant: str) -> list[str]:
        """Everything that still speaks of an instant, besides its ledger and its rollback."""
        return [
            entry.path
            for entry in self.storage.walk("")
            if instant in entry.path and "/ledger/" not in entry.path
        ]


@dataclass(frozen=True)
class Writer:
    """One writer: what it does is done with the real steps."""

    context: Context

    @property
    def storage(self) -> Storage:
        return self.context.storage

    @property
    def background(self) -> ManualBackground:
        background = self.context.ports.background
        assert isinstance(background, ManualBackground)
        return background

    def seen(self) -> ObservedInstants:
        return ObservedInstants.of(load_active(self.storage, load_config(self.storage).layout))

    def begin(self, action: Action = Action.COMMIT) -> Attempt:
        attempt = publish(self.context, action, claims=True).attempt
        assert attempt is not None
        to_inflight(self.context, attempt)
        return attempt

    def write_file(self, attempt: Attempt, file_id: str, partition: str = "p=a") -> WriteStat:
        """One base file, its marker first."""
        name = f"{file_id}_{attempt.write_token(0)}_{attempt.instant}.parquet"
        file = MarkedFile(partition, name)
        leave_marker(self.storage, attempt.instant, file, MarkerKind.CREATE)
        self.storage.put(f"{partition}/{PARTITION_METADATA}", b"#partition metadata\n")
        content = f"rows of {attempt.instant}".encode()
        with self.storage.create(file.path) as stream:
            stream.write(content)
        return WriteStat(
            file_id=file_id,
            path=file.path,
            partition_path=partition,
            file_size_in_bytes=len(content),
        )

    def outcome(
        self, attempt: Attempt, *stats: WriteStat, seen: ObservedInstants | None = None
    ) -> Outcome:
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for stat in stats:
            partition = stat.partition_path or ""
            by_partition[partition] = (*by_partition.get(partition, ()), stat)
        kind = ReplaceCommitMetadata if attempt.action is Action.REPLACE_COMMIT else CommitMetadata
        metadata = kind(partition_to_write_stats=by_partition)
        return Outcome(
            metadata=metadata,
            change=TableChange(instant=attempt.instant),
            touched=frozenset(FileGroupId(s.partition_path or "", s.file_id) for s in stats),
            seen=seen or self.seen(),
            outputs=outputs_of(metadata),
        )

    def commit(
        self, attempt: Attempt, *stats: WriteStat, seen: ObservedInstants | None = None
    ) -> Receipt:
        return commit(self.context, attempt, self.outcome(attempt, *stats, seen=seen))

    def write(self, *file_ids: str, partition: str = "p=a") -> Receipt:
        """A whole write: a new version of each of some file groups."""
        seen = self.seen()
        with self.begin() as attempt:
            stats = [self.write_file(attempt, file_id, partition) for file_id in file_ids]
            return self.commit(attempt, *stats, seen=seen)

    def with_storage(self, storage: Storage) -> "Writer":
        return Writer(replace(self.context, storage=storage))
