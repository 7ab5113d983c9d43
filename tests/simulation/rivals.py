"""Rivals: real writes that want each other's file groups, in any order of their storage calls.

A plan is a word: each letter is a file group, as in `ab` and `bc`. What became of each write is
held against the promises of early conflict detection.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from lakewarden import Table
from lakewarden.engine.detection.rivals import GAVE_WAY
from lakewarden.engine.detection.strategies import DETECTION, STRATEGY, Strategy
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.clean.run import delete_leftovers
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.timeline.heartbeats import BEATS_FOLDER
from lakewarden.engine.timeline.instants.instant import FOLDER_KEEPER
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.markers import is_list_of_markers, marker_folder
from lakewarden.engine.transaction.sweep.sweep import sweep
from lakewarden.engine.write import operations
from lakewarden.engine.write.writer import TableWriter
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import row
from tests.simulation.locks import LockKind
from tests.simulation.processes import Company, Lie
from tests.simulation.scenario import DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.simulation.scheduler import (
    CALM,
    Chances,
    Counts,
    ScheduledRun,
    Scheduler,
    Violation,
)
from tests.writing.model import Write, contents_of
from tests.writing.shapes import Shape

GROUPS = "abcdx"
# Plans of writers, oldest first; the scheduler draws who comes first.
PLANS = (
    ("a", "a"),
    ("ab", "ba"),
    ("x", "abcx"),
    ("abcx", "x"),
    ("ab", "bc", "ca"),
    ("a", "a", "a", "a"),
    ("ab", "c", "bd"),
    ("a", "b", "c"),
)
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "lakewarden.storage.threads": "1",
    "hoodie.metadata.compact.max.delta.commits": "100",
}
LATE = "write_conflict"
_FILE_MS = 600


@dataclass(frozen=True, slots=True)
class RivalKind:
    """Which strategies the writers have, drawn for each, and what disturbs them."""

    strategies: tuple[Strategy | None, ...]
    chances: Chances = CALM
    lie: Lie | None = None
    lock: LockKind = LockKind.KEPT

    @property
    def name(self) -> str:
        named = "-".join(str(one or "off") for one in self.strategies)
        return f"rivals-{named}-{'calm' if self.chances == CALM else 'disturbed'}"


@dataclass(slots=True)
class Part:
    """What one writer has done, as he knows it and as the storage shows it."""

    groups: str
    strategy: Strategy | None
    answer: str = "died"
    rival: str = ""
    shared: tuple[str, ...] = ()
    instant: str = ""


@dataclass(slots=True)
class _Traces:
    """What the storage has shown of one instant, by the number of its step."""

    by: str = ""
    announced: int | None = None
    ended: int | None = None
    removed_early: str = ""


@cache
def _prepared(kind: str) -> tuple[tuple[str, bytes], ...]:
    clock = ManualClock()
    storage = fresh_memory_storage(clock=clock)
    shape = Shape(kind, is_event_time=False)
    shape.create("", storage=storage, ports=ports(clock, 1))
    first = Write("upsert", tuple(row(f"k{one}", 1, one) for one in GROUPS))
    Table.on(storage, ports(clock, 2)).upsert(first.table())
    return tuple((entry.path, storage.read(entry.path)) for entry in storage.walk(""))


@dataclass
class Rivalry(ScheduledRun):
    """One race of some writers, with a seed."""

    kind: RivalKind
    seed: int
    parts: list[Part] = field(default_factory=list)
    traces: dict[str, _Traces] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(f"{self.kind.name} {self.seed}", self.kind.chances)
        self.plans = self.chance.choice(PLANS)
        self.type = self.chance.choice(("cow", "mor"))
        self.storage = self._filled()
        settings = Settings.of(arguments=SEVERAL)
        self._company = Company(self.storage, self.scheduler, self.kind.lock, settings)
        self._company.watch = self._watched
        self._company.lie = self.kind.lie
        self._known = set(self._instants())

    def play(self) -> Counts:
        """Run it, and raise what was broken."""
        self.scheduler.clock.advance(60_000)
        for number, groups in enumerate(self.plans):
            part = Part(groups, self.chance.choice(self.kind.strategies))
            self.parts.append(part)
            late_by = self.chance.choice((0, 0, 60, 150))
            self._company.enters(
                f"writer {number}",
                lambda own, part=part, number=number: self._writes(own, part, number),
                late_by=late_by,
            )
        self.scheduler.run()
        self.assert_promises()
        self.scheduler.chances = CALM
        self._company.enters("fresh one", self._recovers)
        self.scheduler.run()
        self._assert_rows()
        return self.scheduler.counts

    def _writes(self, context: Context, part: Part, number: int) -> None:
        own = SEVERAL | _detection(part.strategy)
        mine = Context(context.storage, context.lock, context.ports, Settings.of(arguments=own))
        rows = Write("upsert", tuple(row(f"k{one}", number + 2, one) for one in part.groups))
        try:
            part.instant = TableWriter(mine).write(operations.upsert(rows.table())).instant
            part.answer = "committed"
        except Conflict as error:
            part.answer = error.code
            part.rival = str(error.parameters.get("instant", ""))
            part.shared = tuple(error.parameters.get("file_groups", ()))  # type: ignore[arg-type]
        except LakewardenError as error:
            part.answer = error.code

    def _recovers(self, context: Context) -> None:
        for pause in (DEAD_AFTER_MS, SWEPT_AFTER_MS):
            self.scheduler.advance(pause)
            recover_failed_instants(context)
            sweep(context)
            delete_leftovers(context)

    def _filled(self) -> MemoryStorage:
        storage = fresh_memory_storage(clock=self.scheduler.clock)
        for path, content in _prepared(self.type):
            storage.put(path, content)
        return storage

    def _instants(self) -> list[str]:
        return [one.requested for one in Table.on(self.storage).timeline().instants]

    # What the storage shows.

    def _watched(self, operation: str, path: str) -> None:
        name = path.rpartition("/")[2]
        instant = name.partition(".")[0]
        step = self.scheduler.steps
        if path.startswith(".hoodie/timeline/") and operation == "create_exclusive":
            if name.endswith((".commit.requested", ".deltacommit.requested")):
                self.traces[instant] = _Traces(by=self.trace[-1].actor)
            elif name.endswith(".inflight") and instant in self.traces:
                self.traces[instant].announced = step
        elif path.startswith(".hoodie/.lakewarden/ledger/"):
            found = self.traces.get(path.split("/")[3])
            if found is not None and operation == "create_exclusive":
                ends = read_ledger(self.storage, path.split("/")[3]).ends_in
                if ends in (LedgerEnd.CANCELLED, LedgerEnd.COMMITTED):
                    found.ended = found.ended or step
        elif path.startswith(".hoodie/.temp/"):
            if operation.startswith("delete"):
                self._removed(path.split("/")[2], path)
            else:
                self._assert_marker(path)
                # Making a file takes a while, in which it is time to look again.
                self.scheduler.clock.advance(_FILE_MS)
        elif not path.startswith(".hoodie/"):
            self._data(operation, path)

    def _data(self, operation: str, path: str) -> None:
        for instant, found in self.traces.items():
            if instant in path:
                if operation.startswith("delete"):
                    self._removed(instant, path)
                elif found.ended is None:
                    # One that others have ended meanwhile may still make a file, which is swept.
                    self._assert_announced(instant, path)

    def _removed(self, instant: str, path: str) -> None:
        found = self.traces.get(instant)
        if found is not None and found.ended is None:
            found.removed_early = path

    def _assert_announced(self, instant: str, path: str) -> None:
        """I4 and I5: the inflight file names its file group, and every list of markers its path."""
        partition, _, name = path.rpartition("/")
        file_id = name.lstrip(".").partition("_")[0]
        inflight = self.storage.read_if_present(f".hoodie/timeline/{self._inflight_of(instant)}")
        if (
            inflight is None
            or partition.encode() not in inflight
            or file_id.encode() not in inflight
        ):
            raise Violation(f"{path} was made, and {instant} has not announced its file group.")
        lists = [
            self.storage.read(one.path)
            for one in self.storage.list(marker_folder(instant)).files
            if is_list_of_markers(instant, one)
        ]
        if lists and not any(f"{path}.marker.".encode() in one for one in lists):
            raise Violation(f"{path} was made, and no list of {instant} has it.")

    def _inflight_of(self, instant: str) -> str:
        is_cow = self.type == "cow"
        return f"{instant}.inflight" if is_cow else f"{instant}.deltacommit.inflight"

    def _assert_marker(self, path: str) -> None:
        """I5: where Java looks for markers there is nothing else."""
        name = path.rpartition("/")[2]
        is_marker = ".marker." in name or name.startswith("MARKERS")
        if not is_marker and name != FOLDER_KEEPER:
            raise Violation(f"{path} is no marker.")

    # What has to hold.

    def part_of(self, instant: str) -> Part:
        by = self.traces[instant].by
        return self.parts[int(by.split()[1])]

    def traces_of(self, number: int) -> list[_Traces]:
        return [one for one in self.traces.values() if one.by == f"writer {number}"]

    def assert_promises(self) -> None:
        """I1, I2, I3, I6 and I9 of early conflict detection; I4 and I5 hold all the time."""
        for number, part in enumerate(self.parts):
            if part.answer == GAVE_WAY:
                self._assert_rightly(number, part)
        for instant, found in self.traces.items():
            if found.removed_early:
                raise Violation(f"{found.removed_early} went before the ledger of {instant} ended.")
        if self.kind.chances == CALM:
            self._assert_calm()

    def _assert_rightly(self, number: int, part: Part) -> None:
        """It has named a write with a common file group that stays by the order of both."""
        if part.rival not in self.traces:
            raise Violation(f"writer {number} gave way to {part.rival}, which nobody has begun.")
        rival, other = self.traces[part.rival], self.part_of(part.rival)
        if not set(part.groups) & set(other.groups) or not part.shared:
            raise Violation(f"writer {number} gave way to {other}, which it shares nothing with.")
        mine = max(one for one, found in self.traces.items() if found.by == f"writer {number}")
        has_committed = other.answer == "committed"
        if has_committed or part.rival < mine:
            return
        is_first = part.strategy is Strategy.TRANSACTIONAL and rival.announced is not None
        own = self.traces[mine].announced
        if not (is_first and (own is None or rival.announced < own)):  # type: ignore[operator]
            raise Violation(f"writer {number} gave way to {part.rival}, which is younger.")

    def _assert_calm(self) -> None:
        """Nobody dies and nothing fails, so only rivals can be in the way."""
        answers = [part.answer for part in self.parts]
        strange = set(answers) - {"committed", GAVE_WAY, LATE}
        if strange:
            raise Violation(f"{strange} in a race that nothing disturbs.")
        for number, part in enumerate(self.parts):
            others = [one for one in self.parts if one is not part]
            rivals = [one for one in others if set(one.groups) & set(part.groups)]
            if not rivals and part.answer != "committed":
                raise Violation(f"writer {number} had no rival: {part}")
            if rivals and all(one.answer != "committed" for one in (part, *rivals)):
                self._assert_named_a_survivor(part)
        everyone = {part.strategy for part in self.parts}
        if everyone == {Strategy.TRANSACTIONAL} and LATE in answers:
            raise Violation("A transactional write failed at its commit.")

    def _assert_named_a_survivor(self, part: Part) -> None:
        """Whoever fails has failed for another one: there is a way to one that has committed."""
        seen: list[Part] = []
        at: Part | None = part
        while at is not None and at.answer != "committed":
            if at in seen or at.rival not in self.traces:
                raise Violation(f"Nobody survives of {self.parts}.")
            seen.append(at)
            at = self.part_of(at.rival)

    def _assert_rows(self) -> None:
        """What has committed is there, in the order of its commits, and nothing else is."""
        table = Table.on(self.storage)
        rows = {f"k{one}": 1 for one in GROUPS}
        completed = sorted(table.timeline().completed(), key=lambda one: one.completed or "")
        for instant in completed:
            if instant.requested in self.traces:
                by = int(self.traces[instant.requested].by.split()[1])
                rows |= {f"k{one}": by + 2 for one in self.parts[by].groups}
        found = {str(one["id"]): one["ts"] for one in contents_of(table.read_arrow())}
        if found != rows:
            raise Violation(f"{found} instead of {rows}")
        left = [one.path for one in self.storage.list(BEATS_FOLDER).files]
        markers = (one.path for one in self.storage.walk(".hoodie/.temp"))
        left += [path for path in markers if not path.endswith(f"/{FOLDER_KEEPER}")]
        if left:
            raise Violation(f"{left} are left.")


def _detection(strategy: Strategy | None) -> Mapping[str, str]:
    return {} if strategy is None else {DETECTION.key: "true", STRATEGY.key: strategy.value}
