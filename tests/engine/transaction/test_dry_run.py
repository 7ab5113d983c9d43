"""Dry runs: a dry run tells what the real one then does, and changes nothing."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.dry_run import dry_run_recovery, dry_run_rollback
from lakewarden.engine.transaction.recovery.failed_writes import Repair, recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    TransactionTable,
)


def with_a_dead_write() -> TransactionTable:
    world = TransactionTable()
    world.writer().write("f1")
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f2")
    own.write_file(attempt, "f3")
    world.clock.advance(DEAD_AFTER_MS)
    return world


def with_a_committed_write() -> TransactionTable:
    """One that died after its commit had been decided, before readers were shown it."""
    rehearsal = TransactionTable()
    counted = rehearsal.writer(FaultPlan())
    counted.write("f1")
    decided = next(
        call.number
        for call in counted.storage.calls  # type: ignore[attr-defined]
        if call.path.endswith("/000002.json") and call.operation == "create_exclusive"
    )
    world = TransactionTable()
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
def test_settling_is_foreseen(make: type[TransactionTable], repair: Repair, files: int) -> None:
    world = make()
    before = world.storage.walk("")
    (dry_run_result,) = dry_run_recovery(world.writer().context)
    assert world.storage.walk("") == before
    (done,) = recover_failed_instants(world.writer().context)
    assert dry_run_result.repair == done.repair == repair
    assert (dry_run_result.instant, dry_run_result.action) == (done.instant, done.action)
    assert dry_run_result.files_deleted == done.files_deleted == files
    assert dry_run_recovery(world.writer().context) == ()


def test_a_rollback_is_foreseen() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    newest = world.writer().write("f1", "f2").instant
    before = world.storage.walk("")
    dry_run_result = dry_run_rollback(world.writer().context, newest)
    assert dry_run_result.is_dry_run
    assert world.storage.walk("") == before
    done = rollback(world.writer().context, newest)
    assert (dry_run_result.action, dry_run_result.files_deleted, dry_run_result.bytes_deleted) == (
        done.action,
        done.files_deleted,
        done.bytes_deleted,
    )
    assert dry_run_rollback(world.writer().context, newest).rollback == done.rollback


def test_the_rollback_of_a_pending_write_is_foreseen() -> None:
    world = with_a_dead_write()
    (pending,) = (instant.requested for instant in world.timeline().pending())
    assert dry_run_rollback(world.writer().context, pending).files_deleted == 2


def test_what_stands_in_the_way_of_a_rollback_is_foreseen() -> None:
    world = TransactionTable()
    older = world.writer().write("f1").instant
    world.writer().write("f1")
    with pytest.raises(InvalidRequest) as refused:
        dry_run_rollback(world.writer().context, older)
    assert refused.value.code == "later_writes"
    with pytest.raises(InvalidRequest) as refused:
        dry_run_rollback(world.writer().context, "20200101000000000")
    assert refused.value.code == "unknown_instant"


def test_a_sweep_is_foreseen() -> None:
    world = with_a_dead_write()
    slow = world.writer()
    attempt = slow.begin()
    cancel(world.writer().context, attempt.instant, "dead", force=True)
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    slow.write_file(attempt, "f4", partition="p=late")
    world.clock.advance(SWEPT_AFTER_MS)
    before = world.storage.walk("")
    dry_run_result = sweep(world.writer().context, dry_run=True)
    assert sum(one.files_deleted for one in dry_run_result) == 1
    assert world.storage.walk("") == before
    assert sweep(world.writer().context) == dry_run_result
