"""Random histories of a table and the plans made for it; one line replays one of them.

Whenever a plan is scheduled, planning is done twice at the same moment, looking at what has changed
and looking at everything: both have to choose the same. At the end everything is carried out, and
nothing may be left that looking at everything would find.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.archive.run import archive
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.planning.plan_request import Draft, Drafted, PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import delete_savepoint, savepoint
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.engine.transaction.abort_attempt import abort_attempt
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import (
    TABLE_SERVICES,
    Context,
    Service,
    load_for_writing,
)
from lakewarden.engine.transaction.window.window import INCREMENTAL
from tests.incremental.planning_table import OpenWrite, ToyTable

PARTITIONS = tuple(f"2023-11-{day:02d}" for day in range(8, 16))
STEPS = 30
FEW_KEPT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
# Histories are run in so many tests, side by side; once more for every twenty kills asked for.
CHUNKS = 10
TIMES = max(int(os.environ.get("LAKEWARDEN_KILLS", "0")) // 20, 1)
# How many plans without any limit take all there is; the first one should.
DRAINS_MAX = 12


@dataclass(frozen=True)
class Case:
    """A service, how it is set from one schedule to the next, and what other engines plan."""

    service: TableService
    # What every plan goes by, then what may differ from one to the next.
    settings: Mapping[str, str]
    choices: Sequence[Mapping[str, str]]
    properties: Mapping[str, str]
    without_some: Callable[[bytes, Random], bytes]
    # How often a write begins new file groups besides those it updates.
    adds: float = 0.25
    # To how many partitions a write goes at most.
    reach: int = 2
    # How many bytes its files have.
    sizes: Sequence[int] = (10, 60, 200)


@dataclass
class BusyService:
    """The same service; somebody writes while it drafts."""

    inner: TableService
    meanwhile: Callable[[], None]

    @property
    def service(self) -> Service:
        return self.inner.service

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        drafted = self.inner.draft(context, snapshot, plan_request)
        self.meanwhile()
        return drafted

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        return self.inner.work(context, attempt, plan)


@dataclass
class History:
    """One table and what happens to it."""

    case: Case
    seed: int
    reported: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.table = ToyTable(properties=dict(self.case.properties))
        self.open: list[OpenWrite] = []
        self.serial = 0
        self.incremental = 0

    def run(self, steps: int) -> None:
        self.table.insert(*(FileGroupId(partition, "f0") for partition in PARTITIONS))
        actions = [
            *[self.write] * 8,
            *[self.begin] * 2,
            *[self.end] * 3,
            *[self.plan] * 7,
            *[self.plan_while_others_write] * 2,
            *[self.execute] * 10,
            self.fail,
            self.cancel,
            self.roll_back,
            self.plan_elsewhere,
            self.archive,
            self.archive_all,
            self.clean,
            self.save,
            self.forget_save,
            self.restore,
        ]
        for _ in range(steps):
            self.random.choice(actions)()
        self.drain()

    # What happens to the table.

    def write(self) -> None:
        self._end(self._begin())

    def begin(self) -> None:
        if len(self.open) < 2:
            self.open.append(self._begin())

    def end(self) -> None:
        if self.open:
            self._end(self.open.pop(self.random.randrange(len(self.open))))

    def plan(self) -> None:
        self._schedule(self.case.service)

    def plan_while_others_write(self) -> None:
        left = [self.random.randint(1, 2)]

        def meanwhile() -> None:
            if left[0]:
                left[0] -= 1
                self.write() if self.random.random() < 0.7 else self.end()

        self._schedule(BusyService(self.case.service, meanwhile))

    def execute(self) -> None:
        pending = self._pending()
        if pending:
            instant = self.random.choice(pending)
            self._try("execute", instant, self._carry_out)

    def fail(self) -> None:
        pending = self._pending()
        if pending:
            self._try("fail", self.random.choice(pending), self._fail)

    def cancel(self) -> None:
        pending = self._pending()
        if pending:
            self._try("cancel", self.random.choice(pending), self._cancel)

    def roll_back(self) -> None:
        """Take back the newest write, which may be that of a plan."""
        completed = self.table.timeline().completed(COMPLETED_WRITES)
        if completed:
            newest = max(completed, key=lambda instant: instant.completed or "")
            self._try("roll back", newest.requested, self._roll_back)

    def plan_elsewhere(self) -> None:
        """Another engine plans some of what there is, and does not say what it leaves out."""
        context = self._context({}, incremental=False)
        drafted = self.case.service.draft(context, load_for_writing(context), PlanRequest())
        if isinstance(drafted, Draft):
            content = self.case.without_some(drafted.content, self.random)
            action = self.case.service.service.action
            instant = publish(context, action, content, claims=False).instant
            self._tell("planned elsewhere", instant)

    def archive(self) -> None:
        self._try("archive", "", lambda _: archive(self._context(FEW_KEPT, incremental=True)))

    def archive_all(self) -> None:
        """As others may who go by other rules than we."""
        self._tell("archived", self.table.archive(keep=self.random.randint(1, 10)))

    def clean(self) -> None:
        self._try("clean", "", lambda _: clean(self._context(FEW_KEPT, incremental=True)))

    def save(self) -> None:
        self._try("save", "", lambda _: savepoint(self.table.context()))

    def forget_save(self) -> None:
        for saved in self.table.timeline().savepoints()[:1]:
            self._try("forget", saved.requested, self._forget_save)

    def restore(self) -> None:
        """To a savepoint if there is one, else to one of the last writes."""
        active = self.table.timeline()
        targets = active.savepoints() or active.completed(COMPLETED_WRITES)[-3:]
        if targets:
            self._try("restore", self.random.choice(targets).requested, self._restore)

    def drain(self) -> None:
        """Everything ends, and is planned without limits until nothing is left."""
        self._tell("drain")
        while self.open:
            self.end()
        settings = dict(self.case.choices[0])
        for _ in range(DRAINS_MAX):
            for instant in self._pending():
                self._carry_out(instant)
            if self._schedule(self.case.service, settings, PlanRequest(), incremental=True) is None:
                break
        full = self._draft(settings, PlanRequest(), incremental=False)
        assert not isinstance(full, Draft), sorted(full.groups)

    # How it is done.

    def _begin(self) -> OpenWrite:
        partitions = self.random.sample(PARTITIONS, self.random.randint(1, self.case.reach))
        there = [s.key for s in self.table.slices() if s.partition in partitions]
        most = min(len(there), self.random.randint(1, self.case.reach + 1))
        updated = self.random.sample(there, most)
        added = []
        for partition in partitions if not updated else partitions[:1]:
            if not updated or self.random.random() < self.case.adds:
                self.serial += 1
                added.append(FileGroupId(partition, f"f{self.serial}"))
        is_mor = "MERGE" in self.case.properties["hoodie.table.type"]
        size = self.random.choice(self.case.sizes)
        write = (
            self.table.begin_write(logs=updated, bases=added, size=size)
            if is_mor
            else self.table.begin_write(bases=[*updated, *added], size=size)
        )
        self._tell("begin", write.attempt.instant, updated, added, size)
        return write

    def _end(self, write: OpenWrite) -> None:
        self._try("end", write.attempt.instant, lambda _: self.table.end_write(write))

    def _schedule(
        self,
        service: TableService,
        settings: Mapping[str, str] | None = None,
        plan_request: PlanRequest | None = None,
        *,
        incremental: bool | None = None,
    ) -> Scheduled | None:
        settings = dict(self.random.choice(self.case.choices)) if settings is None else settings
        plan_request = self._wish() if plan_request is None else plan_request
        if incremental is None:
            incremental = self.random.random() < 0.85
        self._compare(settings, plan_request)
        self.table.clock.advance(100)
        done = schedule(self._context(settings, incremental=incremental), service, plan_request)
        scheduled = done if isinstance(done, Scheduled) else None
        self._tell("schedule", scheduled and scheduled.instant, settings, plan_request, incremental)
        return scheduled

    def _compare(self, settings: Mapping[str, str], plan_request: PlanRequest) -> None:
        part = self._draft(settings, plan_request, incremental=True)
        full = self._draft(settings, plan_request, incremental=False)
        self.incremental += "Since the" in _scope(part)
        missed, extra = _groups(full) - _groups(part), _groups(part) - _groups(full)
        assert not missed, f"missed {sorted(missed)}; {_scope(part)}"
        assert not extra, f"chosen besides {sorted(extra)}; {_scope(part)}"

    def _draft(
        self, settings: Mapping[str, str], plan_request: PlanRequest, *, incremental: bool
    ) -> Drafted:
        context = self._context(settings, incremental=incremental)
        return self.case.service.draft(context, load_for_writing(context), plan_request)

    def _wish(self) -> PlanRequest:
        some = tuple(sorted(self.random.sample(PARTITIONS, 4)))
        return PlanRequest(
            cancellable=self.random.random() < 0.5,
            max_bytes=self.random.choice((None, None, 150, 400)),
            max_file_groups=self.random.choice((None, None, 1, 3)),
            partitions=self.random.choice((None, None, None, some)),
        )

    def _carry_out(self, instant: str) -> None:
        self.table.carry_out(instant, size=self.random.choice((10, 60, 200)))

    def _fail(self, instant: str) -> None:
        """An attempt that gives the plan up, or that is left for the next one."""
        own, attempt = self.table.begin_plan(instant)
        abort_attempt(own.context, attempt, "it failed")

    def _cancel(self, instant: str) -> None:
        cancel(self.table.context(), instant, "not wanted", force=True)

    def _roll_back(self, instant: str) -> None:
        rollback(self.table.context(), instant)

    def _forget_save(self, instant: str) -> None:
        delete_savepoint(self.table.context(), instant)

    def _restore(self, instant: str) -> None:
        restore(self.table.context(), instant)

    def _try(self, what: str, instant: str, act: Callable[[str], object]) -> None:
        """Do what may be refused, as when others hold a plan or came first."""
        self.table.clock.advance(100)
        try:
            act(instant)
        except LakewardenError as error:
            self._tell(what, instant, error.code)
        else:
            self._tell(what, instant)

    def _pending(self) -> list[str]:
        active = self.table.timeline()
        return [instant.requested for instant in active.pending(TABLE_SERVICES)]

    def _context(self, settings: Mapping[str, str], *, incremental: bool) -> Context:
        given = {**self.case.settings, **settings, INCREMENTAL.key: str(incremental).lower()}
        return self.table.context(**{key.replace(".", "__"): value for key, value in given.items()})

    def _tell(self, *words: object) -> None:
        self.reported.append(" ".join(map(str, words)))


def run_histories(case: Case, chunk: int, *, count: int) -> list[History]:
    """One chunk of so many histories; one that fails says how to replay it."""
    histories = [History(case, seed) for seed in range(chunk, count * TIMES, CHUNKS)]
    for history in histories:
        try:
            history.run(STEPS)
        except BaseException as error:
            error.add_note(f"replay: History(CASE, {history.seed}).run({STEPS})")
            error.add_note("\n".join(history.reported))
            raise
    # Many plans have to look at what has changed only, or nothing is shown.
    assert sum(history.incremental for history in histories) >= len(histories) // 2
    return histories


def _groups(drafted: Drafted) -> frozenset[FileGroupId]:
    return drafted.groups if isinstance(drafted, Draft) else frozenset()


def _scope(drafted: Drafted) -> str:
    return drafted.scope if isinstance(drafted, Draft) else drafted.why
