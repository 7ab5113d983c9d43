"""A restore that dies at any call leaves the table as it once was; the next one goes on with it."""

import pytest

from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.services.restore.run import Restored, restore
from lakewarden.engine.services.savepoint.run import savepoint
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.crash.dying_operations import DEAD_AFTER_MS, SWEPT_AFTER_MS, killed
from tests.engine.services.restore.restored_tables import folded_files
from tests.engine.services.service_table import (
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    updated,
)
from tests.sampling import IS_SIMULATION
from tests.writing.model import Write
from tests.writing.shapes import Shape

# A prime number, so that all kinds of calls have their turn.
EVERY = 1 if IS_SIMULATION else 37
HISTORY = (inserted(2),)
LATER = (updated(2, ts=2), inserted(3, partitions="abc"))
# With so many more writes the metadata table has been compacted, and has to be made anew.
LATER_STILL = (*LATER, *(updated(2, ts=ts) for ts in range(3, 11)))
# The same, and what it was compacted from is gone.
LATER_WITHOUT_THEM = (*LATER_STILL, updated(2, ts=11))
INDEXED = Shape("mor", index="RECORD_INDEX")
NEXT = updated(2, ts=99)


def restored(world: ServiceWorld, to: str, seed: int, storage: Storage | None = None) -> Restored:
    return restore(world.context(seed, storage), to)


# To die at every call takes a minute, and several on a busy machine.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("shape", "later", "every"),
    [
        (INDEXED, LATER, EVERY),
        (Shape("cow", has_metadata=False), LATER, EVERY),
        (INDEXED, LATER_STILL, 1 if IS_SIMULATION else 149),
        (INDEXED, LATER_WITHOUT_THEM, 1 if IS_SIMULATION else 149),
    ],
    ids=["metadata table", "listing", "compacted metadata table", "metadata table made anew"],
)
def test_a_restore_that_dies_is_gone_on_with(
    shape: Shape, later: tuple[Write, ...], every: int
) -> None:
    before = new_service_world(shape, *HISTORY)
    to = savepoint(before.context(2)).instant
    before.write(*later)
    if shape is INDEXED and later is LATER:
        plan = schedule(before.context(3), COMPACTION, PlanRequest())
        assert isinstance(plan, Scheduled)
        execute(before.context(4), COMPACTION, plan.instant)
        before.clock.advance(1000)
    if later is LATER_WITHOUT_THEM:
        for path in folded_files(before):
            before.storage.delete(path)
    # The newest write goes first, so that readers may meet each moment since.
    moments = [contents(shape, *HISTORY, *later[:count]) for count in range(len(later) + 1)]
    new = moments[0]
    deaths = killed(before, lambda world, stage: restored(world, to, 50, stage), every=every)
    assert len(deaths) > 60 / every
    for death in deaths.values():
        world = death.world
        seen = world.rows()
        assert seen in moments, f"{death}: the table has never been so"
        assert world.rows(use_metadata=False) == seen, f"{death}: listing differs"
        world.clock.advance(DEAD_AFTER_MS)
        done = restored(world, to, 60)
        assert world.rows() == world.rows(use_metadata=False) == new, f"{death}: after the next"
        assert not world.table(61).timeline().pending(), f"{death}: something is pending"
        assert not world.differences_of_listings(), f"{death}: files that are not there"
        assert world.strays() == set(), f"{death}: stray files"
        if done.instant is None:
            assert seen == new, f"{death}: nothing was left to do"
        world.write(NEXT)
        world.clock.advance(SWEPT_AFTER_MS)
        sweep(world.context(62))
        then = contents(shape, *HISTORY, NEXT)
        assert world.rows() == world.rows(use_metadata=False) == then, f"{death}: the next write"
        assert world.strays() == set(), f"{death}: the sweep took or left something"
