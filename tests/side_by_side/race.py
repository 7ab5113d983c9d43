"""A race: clients that write, services and readers side by side on one real table.

Everything that is drawn is drawn from one seed. Processes pause beyond every expiry, die, miss
answers, and have clocks that differ by minutes. At the end somebody comes who repairs and reads.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import LakewardenError, Unsettled
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from tests.all_kinds import differences
from tests.crash.dying_operations import ports
from tests.histories.rows import table_of
from tests.histories.seen import Difference, rows_of
from tests.histories.table_model import Past
from tests.histories.tables import COLUMNS, INDEXES, TableKind
from tests.side_by_side.clients import (
    NEW,
    OLD,
    Client,
    Deed,
    drawn_deed,
    drawn_detection,
    index_deeds,
    row,
    service_deeds,
)
from tests.side_by_side.order import Broken, Completed, Contents, Seen, Told, assert_order
from tests.simulation.locks import LockKind
from tests.simulation.processes import Company
from tests.simulation.scenario import DEAD_AFTER_MS, SWEPT_AFTER_MS
from tests.simulation.scheduler import CALM, Chances, Counts, ScheduledRun, Scheduler

TRIES = 3
# In how many races indexes are built.
INDEXED = 0.5
SKEW_MAX_MS = 240_000
TOGETHER = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
_BEGUN = frozenset(f"{action}.requested" for action in ("commit", "deltacommit", "replacecommit"))
_WRITES = frozenset({"commit", "deltacommit", "replacecommit"})
_NEVER = frozenset({"corrupt_table", "defect"})


@dataclass(frozen=True, slots=True)
class RaceKind:
    """What a race is on, and what its clients may rely on."""

    lock: LockKind = LockKind.KEPT
    chances: Chances = field(default_factory=Chances)
    has_skew: bool = True
    # Services, writes, kinds of reads, and indexers that take no part.
    without: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"race-{self.lock}"


def _finished(table: Table, instant: str) -> object:
    """Nobody is left who could still be at work on it."""
    return table.run_indexing([instant]) if instant in table.pending_indexing() else None


def drawn_table(chance: Random) -> TableKind:
    """Any kind of table; which row is newer is up to who commits last."""
    while True:
        kind = TableKind(
            type=chance.choice(("cow", "mor")),
            index=chance.choice((*INDEXES, "RECORD_INDEX")),
            is_partitioned=chance.random() < 0.5,
            is_event_time=False,
            has_metadata=chance.random() < 0.7,
            is_scattered=chance.random() < 0.6,
            is_indexed=chance.random() < 0.3,
        )
        if kind.is_possible:
            return kind.as_oldest() if chance.random() < 0.1 else kind


@cache
def _prepared(kind: TableKind) -> tuple[tuple[str, bytes, int], ...]:
    """The files of a table with some commits, and when they were written."""
    clock = ManualClock()
    storage = fresh_memory_storage(clock=clock)
    table = kind.create(storage, ports(clock, 1), properties=TOGETHER)
    for ids in (OLD[:2], OLD[2:4], OLD[4:], OLD[:1]):
        clock.advance(1_000)
        table.upsert(table_of([row(kind, id_, 0) for id_ in ids]))
    return tuple(
        (entry.path, storage.read(entry.path), entry.modified_ms) for entry in storage.walk("")
    )


class Race(ScheduledRun):
    """One race with a seed."""

    def __init__(self, kind: RaceKind, seed: int) -> None:
        self.kind = kind
        self._seed = seed
        self.scheduler = Scheduler(f"{kind.name} {seed}", kind.chances)
        self.table_kind = drawn_table(self.chance)
        self.storage = self._filled()
        self._company = Company(self.storage, self.scheduler, kind.lock, Settings.of())
        self._company.watch = self._watched
        self._deeds: list[Told] = []
        self._reads: list[Seen] = []
        # When instants completed, at which step that could be seen, and when they were gone again.
        self._completed: dict[str, tuple[str, int]] = {}
        self._gone: dict[str, int] = {}
        self._current: dict[str, Told] = {}
        # Instants with a requested file: a request that the storage gets again begins nothing.
        self._requested: set[str] = set()
        self._layout = Table.on(self.storage).config.layout
        completed = Table.on(self.storage).timeline().completed()
        self._prepared_until = max(one.requested for one in completed)
        self._first = Past(self.table_kind)
        for id_ in OLD:
            self._first.set(row(self.table_kind, id_, 0), 0)

    def play(self) -> Counts:
        """Run it, and raise what was broken."""
        self.scheduler.clock.advance(600_000)
        for number in range(self.chance.choice((2, 2, 3, 4))):
            self._enters(f"client {number}", self._writes)
        self._enters("keeper", self._keeps)
        has_indexers = self.table_kind.has_metadata and self.chance.random() < INDEXED
        if has_indexers and "indexers" not in self.kind.without:
            for number in range(self.chance.choice((1, 2))):
                self._enters(f"indexer {number}", self._indexes)
        self._enters("reader", self._looks)
        self.scheduler.run()
        self.scheduler.chances = CALM
        self._enters("fresh one", self._recovers, late_by=0)
        self.scheduler.run()
        assert_order(self._first, self._deeds, self._instants(), self._reads)
        return self.scheduler.counts

    def _filled(self) -> MemoryStorage:
        storage = fresh_memory_storage(clock=self.scheduler.clock)
        for path, content, modified_ms in _prepared(self.table_kind):
            storage.create_dated(path, content, modified_ms)
        return storage

    def _enters(
        self, name: str, work: Callable[[str, Client], object], late_by: int | None = None
    ) -> None:
        skew_ms = self.chance.randrange(-SKEW_MAX_MS, SKEW_MAX_MS) if self.kind.has_skew else 0
        late_by = self.chance.randrange(120) if late_by is None else late_by
        detection = drawn_detection(Random(f"{name} {self._seed}"))
        self._company.enters(
            name,
            lambda context: work(name, Client.at(context, self._prepared_until, detection)),
            late_by=late_by,
            skew_ms=skew_ms,
        )

    # What each of them does.

    def _writes(self, name: str, table: Client) -> None:
        for _ in range(self.chance.choice((1, 2, 2))):
            number = len(self._deeds) + 1
            deed = drawn_deed(self.table_kind, self.chance, number, self.kind.without)
            reported = self._does(name, table, deed)
            if reported.is_acknowledged and self.chance.random() < 0.4:
                self._reads_once(name, table)

    def _keeps(self, name: str, table: Client) -> None:
        deeds = service_deeds(self.table_kind)
        names = sorted(deeds.keys() - self.kind.without)
        for _ in range(self.chance.choice((1, 2, 3))):
            service = self.chance.choice(names)
            self._does(name, table, Deed(service, deeds[service]))

    def _indexes(self, name: str, table: Client) -> None:
        """Build indexes beside the others; who dies in it is followed by whoever comes."""
        deeds = index_deeds(self.table_kind)
        names = sorted(deeds.keys() - self.kind.without)
        for _ in range(self.chance.choice((1, 2, 3))):
            deed = self.chance.choice(names)
            self._does(name, table, Deed(deed, deeds[deed]))
            self._looks_up(name, table)
            self._looks_for_values(name, table)

    def _looks(self, name: str, table: Client) -> None:
        reads: dict[str, tuple[Callable[[str, Table], None], int]] = {
            "lookup": (self._looks_up, 30),
            "values": (self._looks_for_values, 14),
            "past": (self._looks_back, 28),
            "read": (self._reads_once, 28),
        }
        known = [one for word, one in reads.items() if word not in self.kind.without]
        for _ in range(self.chance.choice((1, 2, 3))):
            drawn = self.chance.choices(known, [weight for _, weight in known])
            drawn[0][0](name, table)
            table.rest(self.chance.choice((0.01, 1, 100, 200)))

    def _recovers(self, name: str, table: Client) -> None:
        for wait_ms in (DEAD_AFTER_MS, SWEPT_AFTER_MS):
            self.scheduler.advance(wait_ms)
            table.rollback_failed_writes()
            table.clean(only_pending=True)
            table.sweep()
        for instant in table.pending_indexing():
            self._does(name, table, Deed("finish a build", partial(_finished, instant=instant)))
        for use_metadata in (True, False):
            self._reads_once(name, table, use_metadata=use_metadata)
        self._looks_up(name, table, (*OLD, *NEW))
        for number in range(len(self._deeds) + 1):
            self._looks_for_values(name, table, number)
        for difference in differences(Table.on(self.storage)):
            raise Broken("an index that is not true", difference)
        for result in table.validate():
            if result.finding.verdict is CheckVerdict.FAILED:
                finding = result.finding
                raise Broken(f"validate {result.check}", f"{finding.object} {finding.detail}")
        # Whatever is wrong with an index shows in who writes next.
        rows = [row(self.table_kind, id_, 99) for id_ in (*OLD, "n0", "n1")]

        def effect(past: Past) -> None:
            for one in rows:
                past.put(one, 99)

        last = Deed("upsert all", lambda one: one.upsert(table_of(rows)), effect)
        self._does(name, table, last)
        self._reads_once(name, table)
        self._looks_up(name, table, (*OLD, *NEW))

    def _does(self, name: str, table: Client, deed: Deed) -> Told:
        """A deed, tried again where somebody else has won."""
        for left in reversed(range(TRIES)):
            reported = Told(len(self._deeds) + 1, name, deed, self.scheduler.steps)
            self._deeds.append(reported)
            self._current[name] = reported
            try:
                reported.answer = deed.act(table)
            except LakewardenError as error:
                reported.answer = error
                if error.kind in _NEVER:
                    raise Broken(f"write: {error.code}", f"{reported}: {error}") from error
            reported.ended = self.scheduler.steps
            failed = isinstance(reported.answer, LakewardenError)
            if not failed or not left or isinstance(reported.answer, Unsettled):
                return reported
            table.rest(self.chance.choice((0.01, 1, 100, 200)))
        raise AssertionError

    def _reads_once(self, name: str, table: Table, *, use_metadata: bool | None = None) -> None:
        began = self.scheduler.steps
        chosen = self.chance.random() < 0.6 if use_metadata is None else use_metadata
        read = self._answered(name, lambda: table.read_arrow(COLUMNS, use_metadata=chosen))
        if read is not None:
            how = f"read {'by the metadata table' if chosen else 'by listing'}"
            self._reads.append(Seen(name, began, self.scheduler.steps, read, how))

    def _looks_up(self, name: str, table: Table, asked: tuple[str, ...] = ()) -> None:
        """Read some keys, through whatever indexes there are."""
        began = self.scheduler.steps
        ids = asked or tuple(sorted(self.chance.sample((*OLD, *NEW), 3)))
        by_filter = self.chance.random() < 0.5
        read = self._answered(
            name,
            lambda: (
                table.read_arrow(COLUMNS, [("id", "in", list(ids))])
                if by_filter
                else table.lookup(list(ids), COLUMNS)
            ),
        )
        if read is not None:
            how = f"{'filter' if by_filter else 'lookup'} of {', '.join(ids)}"
            ended = self.scheduler.steps
            self._sees(Seen(name, began, ended, read, how, ids=frozenset(ids)))

    def _looks_for_values(self, name: str, table: Table, number: int | None = None) -> None:
        """Read what some deed has written, by its name or number, as an index of values does."""
        began = self.scheduler.steps
        number = self.chance.randrange(len(self._deeds) + 1) if number is None else number
        column, value = self.chance.choice((("name", f"d{number}"), ("n", number)))
        read = self._answered(name, lambda: table.read_arrow(COLUMNS, [(column, "=", value)]))
        if read is not None:
            how = f"values {column} = {value}"
            self._sees(Seen(name, began, self.scheduler.steps, read, how, number=number))

    def _looks_back(self, name: str, table: Table) -> None:
        """Read an earlier moment, or a window; what is gone may be refused."""
        began, chosen = self.scheduler.steps, self.chance.random() < 0.6
        try:
            known = [one for one in table.timeline().completed() if one.action.is_write]
        except LakewardenError:
            return
        known = [one for one in known if one.requested in self._completed]
        if not known:
            return
        first, last = sorted(self.chance.choices(known, k=2), key=lambda one: one.completed or "")
        window = (first.completed or "", last.completed or "")
        # Windows of version 6 are measured by when its writes began.
        if self.chance.random() < 0.5 or self.table_kind.is_oldest:
            ask = partial(table.read_arrow, COLUMNS, as_of=last.requested, use_metadata=chosen)
            seen = partial(Seen, how=f"as-of {last.requested}", as_of=last.requested)
        else:
            ask = partial(table.changes_arrow, *window, columns=COLUMNS)
            seen = partial(Seen, how=f"changes of {window}", window=window)
        read = self._answered(name, ask)
        if read is not None:
            self._sees(seen(name, began, self.scheduler.steps, read))

    def _answered(self, name: str, ask: Callable[[], pa.Table]) -> Contents | None:
        """The rows of a read; None where it was refused, which damage may not be."""
        try:
            read = ask()
        except LakewardenError as error:
            # A read begins anew where files vanish, more often than they do in a race.
            if error.kind in _NEVER or error.code == "files_vanished":
                raise Broken(f"read: {error.code}", f"{name}: {error}") from error
            return None
        try:
            return rows_of(read, self.table_kind, name)
        except Difference as doubled:
            raise Broken("a key that is there twice", str(doubled)) from None

    def _sees(self, seen: Seen) -> None:
        self._reads.append(seen)

    # What the storage has seen.

    def _watched(self, operation: str, path: str) -> None:
        """Remember whose instants are started, and when each can be seen as completed."""
        folder = f"{self._layout.folder}/"
        if not path.startswith(folder) or operation in ("delete_folder", "touch"):
            return
        name = path.removeprefix(folder)
        time, _, rest = name.partition(".")
        if "/" in name:
            return
        if self._layout.version == 1 and rest in _WRITES:
            # Its file says when it completed, and its name does not.
            entry = self.storage.stat(path)
            instant = None if entry is None else self._layout.parse(entry)
            time = f"{time}_{instant.completed if instant else ''}"
        who = self.trace[-1].actor
        if operation == "delete":
            self._requested -= {time} if rest in _BEGUN else set()
            if "_" in time:
                self._gone[time.partition("_")[0]] = self.scheduler.steps
        elif rest in _BEGUN and time not in self._requested:
            self._requested.add(time)
            if who in self._current:
                self._current[who].instants.append(time)
        elif "_" in time:
            requested, _, completed = time.partition("_")
            if rest in _WRITES:
                self._completed.setdefault(requested, (completed, self.scheduler.steps))

    def _instants(self) -> dict[str, Completed]:
        """What has completed; what is gone from the timeline is in its archive, or taken back."""
        timeline = Table.on(self.storage).state().timeline
        there = {one.requested for one in timeline.instants() if one.action.is_write}
        return {
            requested: Completed(
                requested, completed, step, None if requested in there else self._gone[requested]
            )
            for requested, (completed, step) in self._completed.items()
        }

    def figures(self) -> Counter[str]:
        """What has come of deeds and reads, for whoever adds it up."""
        tally = Counter({"reads": len(self._reads), str(self.table_kind.index): 1})
        tally.update(f"answered {one.how.partition(' ')[0]}" for one in self._reads)
        for reported in self._deeds:
            word = reported.deed.text.partition(" ")[0]
            error = reported.answer.code if isinstance(reported.answer, LakewardenError) else ""
            end = error or ("done" if reported.is_acknowledged else "died")
            tally[f"{word}: {end}"] += 1
        return tally

    def reported(self) -> str:
        """What was done, and what came of it."""
        return "\n".join(f"  {reported}" for reported in self._deeds)
