"""Pasts: a table with a random history, and a plain dict of what it held after each write."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pyarrow as pa

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError
from lakewarden.engine.read.query.retention import Retention
from lakewarden.engine.services.archive.run import archive
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import TableService, schedule
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import delete_savepoint, list_savepoints, savepoint
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.transaction.rollback_request import rollback
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.service_table import ServiceWorld, new_service_world
from tests.writing.model import Key, Kind, ModelRow, Story, Write, contents_of
from tests.writing.shapes import Shape

KINDS: tuple[Kind, ...] = (
    "upsert",
    "upsert",
    "upsert",
    "insert",
    "delete",
    "overwrite_partitions",
    "delete_partitions",
)
CLEANS: tuple[dict[str, object], ...] = (
    {"hoodie__clean__commits__retained": 1},
    {"hoodie__clean__commits__retained": 3},
    {
        "hoodie__clean__policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie__clean__fileversions__retained": 1,
    },
    {
        "hoodie__clean__policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie__clean__fileversions__retained": 2,
    },
    {"hoodie__clean__policy": "KEEP_LATEST_BY_HOURS", "hoodie__clean__hours__retained": 1},
)
ARCHIVE: dict[str, object] = {
    "hoodie__keep__min__commits": 2,
    "hoodie__keep__max__commits": 3,
    "hoodie__clean__commits__retained": 1,
    "hoodie__compact__inline__max__delta__commits": 1,
}
STEPS = (
    *("write",) * 7,
    *("serve", "plan", "run"),
    *("clean",) * 3,
    *("archive", "archive", "die", "die"),
    *("save", "save", "forget_savepoint", "restore", "restore", "roll_back", "wait"),
)


@dataclass(frozen=True)
class State:
    """What the table held when a write had completed, and which write has written each row."""

    requested: str
    completed: str
    rows: dict[Key, ModelRow]
    writers: dict[Key, str]


@dataclass
class History:
    """A table, and its states; every step is at a time of its own."""

    shape: Shape
    random: Random
    world: ServiceWorld = field(init=False)
    story: Story = field(init=False)
    states: list[State] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    # Every time at which something was started or completed, undone since or not.
    times: set[str] = field(default_factory=set)
    seed: int = 200

    def __post_init__(self) -> None:
        self.world = new_service_world(self.shape)
        number = self.random.randint(0, 999)
        self.story = Story(number, self.shape.model(), kinds=KINDS, keys=12)

    @property
    def services(self) -> tuple[TableService, ...]:
        found: list[TableService] = []
        if self.shape.type == "mor":
            found += [COMPACTION, COMPACTION, LOG_COMPACTION]
        return (*found,) if self.shape.index == "BUCKET" else (*found, CLUSTERING)

    def step(self) -> None:
        self.seed += 1
        self.world.clock.advance(1000)
        name = self.random.choice(STEPS)
        try:
            getattr(self, name)()
            self.done.append(name)
        except (Conflict, InvalidRequest) as refusal:
            self.done.append(f"{name}: {refusal.code}")
        for one in self.writes():
            self.times |= {one.requested, one.completed or ""}

    def writes(self) -> tuple[Instant, ...]:
        return self.world.table(97).timeline().completed()

    def write(self) -> None:
        write = self.story.next()
        self.world.write(write)
        self.story.model.apply(write)
        self._remember(write)

    def _remember(self, write: Write) -> None:
        model, newest = self.story.model, max(self.writes(), key=lambda one: one.completed or "")
        if self.states and newest.requested == self.states[-1].requested:
            # Nothing was written: there was nothing to delete.
            return
        before = self.states[-1].writers if self.states else {}
        writers = {key: before.get(key, "") for key in model.rows}
        if write.kind != "delete":
            writers |= dict.fromkeys(map(model.key, write.rows), newest.requested)
        rows = dict(model.rows)
        self.states.append(State(newest.requested, newest.completed or "", rows, writers))

    def plan(self) -> None:
        schedule(self.world.context(self.seed), self.random.choice(self.services), PlanRequest())

    def run(self) -> None:
        for service in dict.fromkeys(self.services):
            for instant in pending_plans(self.world.context(self.seed), service):
                execute(self.world.context(self.seed), service, instant)

    def serve(self) -> None:
        self.plan()
        self.run()

    def clean(self) -> None:
        clean(self.world.context(self.seed, **self.random.choice(CLEANS)))

    def archive(self) -> None:
        if self.random.random() < 0.7:
            self.world.table(self.seed).maintain_metadata(["compaction"])
        beyond = {"hoodie__archive__beyond__savepoint": self.random.random() < 0.3}
        archive(self.world.context(self.seed, **ARCHIVE, **beyond))

    def die(self) -> None:
        """A clean, or an archival, that ends at some call; nobody has gone on with it yet."""
        fault = Fault(self.random.randint(5, 70), FaultKind.FAIL_BEFORE, is_fatal=True)
        stage = FaultyStorage(self.world.storage, FaultPlan((fault,)), self.world.clock)
        settings = self.random.choice((*CLEANS, ARCHIVE))
        service = archive if settings is ARCHIVE else clean
        with suppress(Crashed):
            service(self.world.context(self.seed, stage, **settings))
        self.world.clock.advance(DEAD_AFTER_MS)

    def save(self) -> None:
        if self.states:
            savepoint(self.world.context(self.seed), self.random.choice(self.states).requested)

    def forget_savepoint(self) -> None:
        context = self.world.context(self.seed)
        for one in list_savepoints(context)[:1]:
            delete_savepoint(context, one.instant)

    def roll_back(self) -> None:
        if self.states and self.random.random() < 0.5:
            newest = self.states[-1]
            rollback(self.world.context(self.seed), newest.requested)
            self._go_back(self.states[:-1])

    def wait(self) -> None:
        self.world.clock.advance(1_800_000)

    def restore(self) -> None:
        writes = self.writes()
        if not writes:
            return
        target = self.random.choice(writes[-6:])
        restore(self.world.context(self.seed), target.requested)
        self._go_back(self.completed_by(target.completed or ""))

    def completed_by(self, time: str) -> list[State]:
        return [one for one in self.states if one.completed <= time]

    def _go_back(self, states: list[State]) -> None:
        self.states = states
        self.story.model.rows = dict(states[-1].rows) if states else {}

    # What the model knows.

    def rows_as_of(self, requested: str) -> list[ModelRow]:
        return _sorted([one for one in self.states if one.requested <= requested])

    def changes(self, since: str, until: str | None) -> list[ModelRow]:
        reached = self.states if until is None else self.completed_by(until)
        written = {one.requested for one in reached if one.completed > since}
        if not reached:
            return []
        last = reached[-1]
        rows = {key: row for key, row in last.rows.items() if last.writers[key] in written}
        return _in_order(rows)


def answer(ask: Callable[[], pa.Table]) -> list[ModelRow] | str:
    """Rows, or the code of the refusal."""
    try:
        return contents_of(ask())
    except LakewardenError as error:
        return error.code


def admits_moment(retention: Retention, moment: str) -> bool:
    return moment >= (retention.earliest_as_of or "") or moment in retention.savepoints


def admits_window(retention: Retention, since: str, until: str | None) -> bool:
    is_started = since >= (retention.earliest_changes or "")
    return until is None or is_started or until >= (retention.earliest_end or "")


def check(history: History) -> None:
    """Whatever retention admits is as the model has it; all else, too, or it is refused."""
    table, now = history.world.table(97), _sorted(history.states)
    for use_metadata in (True, False):
        found = answer(partial(table.read_arrow, use_metadata=use_metadata))
        assert found == now, history.done
    retention = table.retention()
    for moment in sorted(history.times):
        use_metadata = history.random.random() < 0.5
        read = partial(table.read_arrow, as_of=moment, use_metadata=use_metadata)
        is_admitted = admits_moment(retention, moment)
        _compare(history, moment, answer(read), history.rows_as_of(moment), is_admitted)
    begins = ["0", *history.random.sample(sorted(history.times), min(4, len(history.times)))]
    for since in begins:
        for until in (None, *begins[1:]):
            if until is not None and until <= since:
                continue
            found = answer(partial(table.changes_arrow, since, until))
            is_admitted = admits_window(retention, since, until)
            _compare(history, (since, until), found, history.changes(since, until), is_admitted)
    check_restores(history, retention)


def _compare(
    history: History, asked: object, found: object, expected: object, is_admitted: bool
) -> None:
    if is_admitted or found != "history_cleaned":
        assert found == expected, (asked, is_admitted, history.done)


def check_restores(history: History, retention: Retention) -> None:
    """Those that are admitted are possible; one that is possible, tried on a copy, is exact."""
    writes = history.writes()
    pending = history.world.table(97).timeline().pending()
    possible = []
    for one in writes:
        reported = restore(history.world.context(history.seed), one.requested, dry_run=True)
        codes = {obstacle.code for obstacle in reported.obstacles}
        is_admitted = bool(retention.earliest_restore) and one.requested >= (
            retention.earliest_restore or ""
        )
        assert not is_admitted or codes <= {"savepointed"}, (
            one,
            reported,
            history.done,
            str(retention),
        )
        if not codes:
            possible.append(one)
    if not possible or pending:
        return
    target = history.random.choice(possible)
    copy = ServiceWorld(history.world.clock, history.world.copy().storage)
    restore(copy.context(history.seed + 1), target.requested)
    expected = _sorted(history.completed_by(target.completed or ""))
    for use_metadata in (True, False):
        found = contents_of(copy.table(98).read_arrow(use_metadata=use_metadata))
        assert found == expected, ("restore", target, history.done)


def _sorted(states: list[State]) -> list[ModelRow]:
    return _in_order(states[-1].rows) if states else []


def _in_order(rows: dict[Key, ModelRow]) -> list[ModelRow]:
    return sorted(rows.values(), key=lambda row: (str(row["id"]), str(row["p"])))
