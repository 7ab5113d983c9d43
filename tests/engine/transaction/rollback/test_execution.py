"""Undoing: nothing of an instant goes before its end is sure, and nobody undoes it twice."""

import pytest

from lakewarden.engine.formats.instant_metadata import rollback as payload
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackPlan,
    RollbackRequest,
)
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, Defect, InvalidRequest
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.execution import begin_rollback
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import reload_under_lock
from lakewarden.engine.transaction.state.rollback_plans import pending_rollbacks
from tests.engine.transaction.fake_locks import LosesItself, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.plans import published
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable


def pending(world: TransactionTable) -> list[str]:
    return [instant.requested for instant in world.timeline().pending()]


def rollback_of(world: TransactionTable, instant: str) -> str:
    """A rollback that somebody without a ledger has planned."""
    target = InstantReference(commit_time=instant, action="commit")
    plan = payload.encode_plan(RollbackPlan(instant_to_rollback=target))
    return publish(world.writer().context, Action.ROLLBACK, plan, claims=False).instant


@pytest.mark.parametrize("is_planned", [True, False])
def test_law_1_nothing_is_undone_that_has_not_ended(is_planned: bool) -> None:
    world = TransactionTable()
    write = world.writer().begin().instant
    if is_planned:
        rollback_of(world, write)
    before = world.storage.walk("")
    context = world.writer().context
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        files = snapshot.pending(write)
        assert files is not None
        rollbacks = pending_rollbacks(snapshot.timeline.active)
        with pytest.raises(Defect) as raised:
            begin_rollback(context, held, snapshot, rollbacks, files)
    assert raised.value.code == "law_broken"
    assert world.storage.walk("") == before


def test_without_the_lock_no_rollback_is_gone_on_with() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    rollback_of(world, attempt.instant)
    world.clock.advance(DEAD_AFTER_MS)
    with pytest.raises(Conflict) as raised:
        recover_failed_instants(world.writer(lock=lambda: LosesItself(1)).context)
    assert raised.value.code == "lock_lost"
    assert len(world.data_files()) == 1


def test_a_write_of_which_only_its_end_was_on_the_timeline_stays_there_until_it_is_undone() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    active = world.timeline()
    (completed,) = active.completed()
    for state in ("commit.requested", "inflight"):
        world.storage.delete(f".hoodie/timeline/{newest}.{state}")
    there: list[str] = []
    hook = Hook(1, lambda: there.extend(pending(world)), of=("delete", active.path(completed)))
    rollback(world.writer(storage=hook.storage).context, newest)
    assert newest in there
    assert pending(world) == []


def test_who_finds_his_rollback_completed_by_others_leaves_it_at_that() -> None:
    world = TransactionTable()
    write = world.writer().begin().instant
    world.clock.advance(DEAD_AFTER_MS)
    others = []

    def others_go_on() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        others.extend(recover_failed_instants(world.writer().context))

    # The files are gone, and the lock is to be taken for the completion.
    hook = Hook(1, others_go_on, of=("walk", f".hoodie/.temp/{write}"))
    own = world.writer(storage=hook.storage)
    assert recover_failed_instants(own.context) == ()
    assert [one.instant for one in others] == [write]
    assert len(world.timeline().completed((Action.ROLLBACK,))) == 1


def test_the_files_of_a_plan_that_java_has_begun_without_markers_are_found() -> None:
    world = TransactionTable()
    plan = published(world)
    world.storage.put(f".hoodie/timeline/{plan}.compaction.inflight", b"")
    world.storage.put("p=a/.hoodie_partition_metadata", b"#partition metadata\n")
    world.storage.put(f"p=a/f1_1-22-333_{plan}.parquet", b"by Java")
    cancel(world.writer().context, plan, "not wanted", force=True)
    assert world.data_files() == frozenset()


def left_by_java(world: TransactionTable, request: RollbackRequest) -> None:
    """A rollback by Java of a dead write with one file, which it has left."""
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    target = InstantReference(commit_time=attempt.instant, action="commit")
    plan = RollbackPlan(instant_to_rollback=target, rollback_requests=(request,))
    publish(own.context, Action.ROLLBACK, payload.encode_plan(plan), claims=False)
    world.clock.advance(DEAD_AFTER_MS)


def test_a_rollback_that_would_take_files_of_others_is_damage() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    (theirs,) = world.data_files()
    left_by_java(world, RollbackRequest(partition_path="p=a", files_to_be_deleted=(theirs,)))
    with pytest.raises(CorruptTable, match="has not written"):
        recover_failed_instants(world.writer().context)
    assert world.visible() == {theirs}


def test_a_rollback_that_appends_to_logs_is_left_to_java() -> None:
    world = TransactionTable()
    blocks = {".f1_20231114221319000.log.1_1-2-3": 100}
    left_by_java(world, RollbackRequest(partition_path="p=a", log_blocks_to_be_deleted=blocks))
    with pytest.raises(InvalidRequest) as raised:
        recover_failed_instants(world.writer().context)
    assert raised.value.code == "unsupported_rollback_plan"
    assert len(pending(world)) == 2


@pytest.mark.parametrize("lost_at", [1, 2])
def test_who_loses_the_lock_before_the_completion_says_so(lost_at: int) -> None:
    world = TransactionTable()
    write = world.writer().begin().instant
    world.clock.advance(DEAD_AFTER_MS)
    locks = iter((NoLock(), LosesItself(lost_at)))
    with pytest.raises(Conflict) as raised:
        recover_failed_instants(world.writer(lock=lambda: next(locks)).context)
    assert raised.value.code == "lock_lost"
    assert (write in pending(world)) is (lost_at == 1)
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    assert pending(world) == []
