"""Random histories: whatever is written, served, cleaned and restored, what is kept is readable."""

from dataclasses import dataclass, field
from random import Random

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import TableService, schedule
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import delete_savepoint, list_savepoints, savepoint
from tests.engine.services.service_table import ServiceWorld, new_service_world
from tests.sampling import IS_SIMULATION
from tests.writing.model import Kind, ModelRow, Story, contents_of
from tests.writing.shapes import Shape

SEEDS = range(40 if IS_SIMULATION else 1)
STEPS = 40 if IS_SIMULATION else 14
SHAPES = (Shape("mor"), Shape("cow", has_metadata=False), Shape("mor", index="BUCKET"))
KINDS: tuple[Kind, ...] = (
    "upsert",
    "upsert",
    "delete",
    "overwrite_partitions",
    "delete_partitions",
)


@dataclass
class Life:
    """A table, what it has to hold, and what it held after each write."""

    shape: Shape
    random: Random
    world: ServiceWorld = field(init=False)
    story: Story = field(init=False)
    moments: dict[str, list[ModelRow]] = field(default_factory=dict)
    keys: dict[str, dict[tuple[str, str], ModelRow]] = field(default_factory=dict)
    # Where the cleans so far have stopped.
    earliest: str = ""
    seed: int = 200

    def __post_init__(self) -> None:
        self.world = new_service_world(self.shape)
        model = self.shape.model()
        self.story = Story(self.random.randint(0, 999), model, kinds=KINDS, keys=15)

    @property
    def services(self) -> tuple[TableService, ...]:
        found: list[TableService] = [COMPACTION] if self.shape.type == "mor" else []
        return (*found,) if self.shape.index == "BUCKET" else (*found, CLUSTERING)

    def step(self) -> str:
        self.seed += 1
        self.world.clock.advance(1000)
        name = self.random.choice(
            ("write", "write", "write", "plan", "run", "clean", "save", "undo")
        )
        getattr(self, name)()
        return name

    def write(self) -> None:
        write = self.story.next()
        try:
            self.world.write(write)
        except Conflict as conflict:
            if conflict.code != "write_conflict":
                raise
            # A plan that is not to be cancelled keeps writes away.
            return
        self.story.model.apply(write)
        completed = self.world.table(97).timeline().completed()
        if not completed:
            # A write without rows makes no instant.
            return
        newest = completed[-1].requested
        self.moments[newest] = self.story.model.contents()
        self.keys[newest] = dict(self.story.model.rows)

    def plan(self) -> None:
        schedule(self.world.context(self.seed), self.random.choice(self.services), PlanRequest())

    def run(self) -> None:
        for service in self.services:
            for instant in pending_plans(self.world.context(self.seed), service):
                execute(self.world.context(self.seed), service, instant)

    def clean(self) -> None:
        retained = self.random.choice((1, 2, 3))
        done = clean(self.world.context(self.seed, hoodie__clean__commits__retained=retained))
        if done:
            self.earliest = done.earliest_retained or ""

    def save(self) -> None:
        context = self.world.context(self.seed)
        there = list_savepoints(context)
        if there and self.random.random() < 0.4:
            delete_savepoint(context, self.random.choice(there).instant)
        elif self.moments:
            try:
                savepoint(context, self.random.choice(sorted(self.moments)))
            except InvalidRequest as refusal:
                if refusal.code != "files_cleaned":
                    raise

    def undo(self) -> None:
        if not self.moments or self.random.random() < 0.5:
            return
        to = self.random.choice(sorted(self.moments)[-3:])
        context = self.world.context(self.seed)
        if restore(context, to, dry_run=True).obstacles:
            with pytest.raises(InvalidRequest):
                restore(context, to)
            return
        restore(context, to)
        self.moments = {one: rows for one, rows in self.moments.items() if one <= to}
        self.keys = {one: rows for one, rows in self.keys.items() if one <= to}
        self.story.model.rows = dict(self.keys[to])

    def check(self, after: list[str]) -> None:
        """Everything that is to be readable is read, and is as it was."""
        world = self.world
        now = self.story.model.contents()
        assert world.rows() == now, after
        assert world.rows(use_metadata=False) == now, after
        assert not world.differences_of_listings(), after
        saved = {one.instant for one in list_savepoints(world.context(self.seed))}
        table = world.table(97)
        for instant, rows in self.moments.items():
            if instant >= self.earliest or instant in saved:
                assert contents_of(table.read_arrow(as_of=instant)) == rows, (after, instant)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_stays_readable(seed: int, shape: Shape) -> None:
    life = Life(shape, Random(seed))
    done: list[str] = []
    for _ in range(STEPS):
        done.append(life.step())
        if done[-1] in ("clean", "undo", "run"):
            life.check(done)
    life.clean()
    life.check([*done, "clean"])
