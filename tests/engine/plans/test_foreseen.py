"""Foreseeing: a dry run tells what the real one then does, and changes nothing."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.failed_writes import Repair, settle
from lakewarden.engine.plans.foreseen import foresee_rollback, foresee_settling
from lakewarden.engine.plans.rollback import rollback
from lakewarden.engine.plans.sweep import sweep
from lakewarden.engine.storage.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.storage.faults import Crashed
from tests.engine.plans.world import DEAD_AFTER_MS, SWEPT_AFTER_MS, World


def with_a_dead_write() -> World:
    world = World()
    world.writer().write("f1")
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f2")
    own.write_file(attempt, "f3")
    world.clock.advance(DEAD_AFTER_MS)
    return world


def with_a_committed_write() -> World:
    """One that died after its commit had been decided, before readers were shown it."""
    rehearsal = World()
    counted = rehearsal.writer(FaultPlan())
    counted.write("f1")
    decided = next(
        call.number
        for call in counted.storage.calls  # type: ignore[attr-defined]
        if call.path.endswith("/000002.json") and call.operation == "create_exclusive"
    )
    world = World()
    plan = FaultPlan((Fault(decided, FaultKind.FAIL_AFTER, is_fatal=True),))
    with pytest.raises(Crashed):
        world.writer(plan).write("f1")
    return world


@pytest.mark.parametrize(
    ("make", "repair", "files"),
    [
        (with_a_dead_write, Repair.ROLLED_BACK, 2),
        (with_a_committed_write, Repair.ROLLED_FORWARD, 0),
    ],
)
def test_settling_is_foreseen(make: type[World], repair: Repair, files: int) -> None:
    world = make()
    before = world.storage.walk("")
    (foreseen,) = foresee_settling(world.writer().context)
    assert world.storage.walk("") == before
    (done,) = settle(world.writer().context)
    assert foreseen.repair == done.repair == repair
    assert (foreseen.instant, foreseen.action) == (done.instant, done.action)
    assert foreseen.files_deleted == done.files_deleted == files
    assert foresee_settling(world.writer().context) == ()


def test_a_rollback_is_foreseen() -> None:
    world = World()
    world.writer().write("f1")
    newest = world.writer().write("f1", "f2").instant
    before = world.storage.walk("")
    foreseen = foresee_rollback(world.writer().context, newest)
    assert foreseen.is_dry_run
    assert world.storage.walk("") == before
    done = rollback(world.writer().context, newest)
    assert (foreseen.action, foreseen.files_deleted, foreseen.bytes_deleted) == (
        done.action,
        done.files_deleted,
        done.bytes_deleted,
    )
    assert foresee_rollback(world.writer().context, newest).rollback == done.rollback


def test_the_rollback_of_a_pending_write_is_foreseen() -> None:
    world = with_a_dead_write()
    (pending,) = (instant.requested for instant in world.timeline().pending())
    assert foresee_rollback(world.writer().context, pending).files_deleted == 2


def test_what_stands_in_the_way_of_a_rollback_is_foreseen() -> None:
    world = World()
    older = world.writer().write("f1").instant
    world.writer().write("f1")
    with pytest.raises(InvalidRequest) as refused:
        foresee_rollback(world.writer().context, older)
    assert refused.value.code == "later_writes"
    with pytest.raises(InvalidRequest) as refused:
        foresee_rollback(world.writer().context, "20200101000000000")
    assert refused.value.code == "unknown_instant"


def test_a_sweep_is_foreseen() -> None:
    world = with_a_dead_write()
    slow = world.writer()
    attempt = slow.begin()
    cancel(world.writer().context, attempt.instant, "dead", force=True)
    world.clock.advance(DEAD_AFTER_MS)
    settle(world.writer().context)
    slow.write_file(attempt, "f4", partition="p=late")
    world.clock.advance(SWEPT_AFTER_MS)
    before = world.storage.walk("")
    foreseen = sweep(world.writer().context, dry_run=True)
    assert sum(one.files_deleted for one in foreseen) == 1
    assert world.storage.walk("") == before
    assert sweep(world.writer().context) == foreseen
