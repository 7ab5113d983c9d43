"""The world of a history: a table in memory, its clock, and the model that goes with it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.metadata.reading.kept_keys import KeySnapshots
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import parse_plan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.table_service_handle import TableServiceHandle
from tests.histories.every_operation import OPERATIONS
from tests.histories.operation import Call
from tests.histories.seen import Difference, plain, rows_of, show
from tests.histories.steps import Step
from tests.histories.table_model import Past
from tests.histories.tables import TableKind

DEAD_AFTER_MS = 10 * 60 * 1000
# From a moment to more than any file or heartbeat is kept.
PAUSES_MS = (1_000, 1_000, 5_000, 61_000, 2 * 3_600_000)
_NEVER_REFUSED = frozenset({"corrupt_table", "defect", "unavailable", "unsettled"})
# Enough for all keys of a history.
KNOWN_BYTES = 1 << 20
# What others do to a table; here nobody else is there.
_OF_OTHERS = frozenset({"files_vanished", "snapshot_outdated", "clock_skew", "lock_lost"})


@dataclass
class PlayedTable:
    """A table, and what its rows have to be."""

    kind: TableKind
    clock: ManualClock = field(default_factory=ManualClock)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    played: list[str] = field(default_factory=list)
    deaths: int = 0
    # Of one who looks on from the first step to the last.
    known_keys: KeyCache = field(default_factory=KeyCache)

    def __post_init__(self) -> None:
        self.storage: MemoryStorage = fresh_memory_storage(clock=self.clock)
        self.kind.create(self.storage, self._ports(0))
        self.snapshots = KeySnapshots(fresh_memory_storage(), "memory", "t", EventLog())
        self.known_keys.within(KNOWN_BYTES, self.snapshots)
        self.past = Past(self.kind, has_metadata=self.kind.has_metadata)

    def table(self, number: int = 9_999, storage: Storage | None = None) -> Table:
        return Table.on(storage or self.storage, self._ports(number))

    def play(self, step: Step) -> str | None:
        """Play one step; what it was, or None where there is nothing to do."""
        chance = Random(step.seed)
        self.clock.advance(chance.choice(PAUSES_MS))
        call = OPERATIONS[step.name].draw(self.past, chance, step.number)
        if call is None:
            return None
        self.clock.advance(call.waits_ms)
        after = self.past.copy()
        call.effect(after)
        try:
            answer = call.act(self.table(step.number, self._storage_for(step, call)))
        except Crashed:
            self.deaths += 1
            reported = self._died(call, after, step)
        except LakewardenError as error:
            reported = self._refused(call, step, error)
        else:
            reported = ""
            self._done(call, after, step, answer)
            self._assert_answered(call, answer)
        self.played.append(f"{step}: {call.text}{reported}")
        return self.played[-1]

    def _ports(self, number: int) -> Ports:
        return Ports(
            clock=self.clock,
            ids=SeededIds(number),
            executor=LocalExecutor(1),
            background=ManualBackground(),
        )

    def _storage_for(self, step: Step, call: Call) -> Storage:
        if call.is_whole or not step.death:
            return self.storage
        return FaultyStorage(self.storage, parse_plan(step.death))

    def _assert_answered(self, call: Call, answer: object) -> None:
        for difference in call.differs(answer):
            raise Difference("counts", f"{call.text}: {difference}")

    def _refused(self, call: Call, step: Step, error: LakewardenError) -> str:
        if error.kind in _NEVER_REFUSED or error.code in _OF_OTHERS:
            raise Difference(f"{error.kind} {error.code}", f"{call.text}: {error}") from error
        self.refusals[step.name, error.code] += 1
        return f"  [refused: {error.code}]"

    def _done(self, call: Call, after: Past, step: Step, answer: object) -> None:
        call.learns(after, answer)
        self._adopt(after, call, step, getattr(answer, "instant", None))

    def _adopt(self, after: Past, call: Call, step: Step, instant: str | None) -> None:
        """The model is what it is after a call; instants have the times that the timeline says."""
        completed = self.table().timeline().completed()
        fresh = [one for one in completed if one.requested not in self.past.instants]
        if call.is_write:
            own = [one for one in fresh if one.requested == instant] or fresh
            if own:
                assert own[0].completed is not None
                after.wrote(step.number, own[0].requested, own[0].completed)
        after.instants = frozenset(one.requested for one in completed)
        self.past = after

    def _died(self, call: Call, after: Past, step: Step) -> str:
        """Somebody comes after one who died: the table is as it was, or as it should become."""
        self._assert_between(call, after, step, "at once")
        self.clock.advance(DEAD_AFTER_MS)
        self._assert_between(call, after, step, "later")
        if call.is_repeated:
            try:
                self._done(call, after, step, call.act(self.table(step.number + 5_000)))
            except LakewardenError as error:
                return f"  [died]{self._refused(call, step, error)}"
            return "  [died, called again]"
        self.table(step.number + 5_000).rollback_failed_writes()
        fresh = {one.requested for one in self.table().timeline().completed()} - self.past.instants
        is_made = bool(fresh)
        done = after if is_made or not call.is_write else self.past.copy()
        done = replace(done, plans=self._plans())
        self._adopt(done, call if is_made else replace(call, is_write=False), step, None)
        return f"  [died, {'made' if is_made else 'not made'}]"

    def _plans(self) -> dict[str, str]:
        """The plans that are pending, of whoever; one who died may have left one."""
        table = self.table()
        doors: dict[str, TableServiceHandle] = {
            "compaction": table.compaction,
            "log_compaction": table.log_compaction,
            "clustering": table.clustering,
        }
        return {plan.instant: name for name, door in doors.items() for plan in door.pending()}

    def _assert_between(self, call: Call, after: Past, step: Step, when: str) -> None:
        # A rollback takes the columns along that the write had added.
        names = tuple(name for name in self.past.columns if name in after.columns)
        allowed = [plain(rows, names) for rows in (self.past.rows, after.rows, *call.between)]
        for use_metadata in (True, False):
            read = self.table().read_arrow(self.kind.shown(names), use_metadata=use_metadata)
            seen = rows_of(read, self.kind, "after a death")
            if seen not in allowed:
                raise Difference(
                    f"after a death of {step.name}",
                    f"{when}, {use_metadata=}: {call.text}:\n{show(seen)}\ninstead of\n"
                    f"{show(allowed[0])}\nor\n{show(allowed[1])}",
                )
