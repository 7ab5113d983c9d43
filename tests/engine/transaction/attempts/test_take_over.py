"""Taking over: what was published and left is gone on with by one, and by none who has failed."""

from contextlib import suppress

import pytest

from lakewarden.engine.formats.instant_metadata.clean import CleanPlan, encode_plan
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action, State
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.attempts.take_over import TakenOver, remove_torn, take_over
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.live_attempt import JAVA
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from tests.engine.transaction.fake_locks import LosesItself, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.just_before import LOCK_IN_A_FILE
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable, Writer


def left_clean(world: TransactionTable) -> str:
    content = encode_plan(CleanPlan(policy="KEEP_LATEST_COMMITS"))
    return publish(world.writer().context, Action.CLEAN, content, claims=False).instant


def taken(own: Writer, instant: str) -> TakenOver:
    return take_over(own.context, Action.CLEAN, instant)


def begins(own: Writer, instant: str) -> None:
    assert taken(own, instant).attempt is not None


def test_who_is_at_it_is_told() -> None:
    world = TransactionTable()
    instant = left_clean(world)
    attempt = taken(world.writer(), instant).attempt
    assert attempt is not None
    again = taken(world.writer(), instant)
    assert (again.attempt, again.live and again.live.owner) == (None, attempt.owner)
    assert [one.state for one in world.timeline().instants] == [State.INFLIGHT]


def test_what_is_cancelled_or_not_there_is_not_taken_over() -> None:
    world = TransactionTable()
    first, second = left_clean(world), left_clean(world)
    append_cancelled(
        world.writer().context, Ledger(first), Action.CLEAN, PlanScope(), reason="not wanted"
    )
    world.storage.delete(f".hoodie/timeline/{second}.clean.requested")
    assert taken(world.writer(), first) == taken(world.writer(), second) == TakenOver()


def test_without_the_lock_nothing_is_taken_over() -> None:
    world = TransactionTable()
    instant = left_clean(world)
    with pytest.raises(Conflict) as raised:
        taken(world.writer(lock=lambda: LosesItself(1)), instant)
    assert raised.value.code == "lock_lost"
    assert read_ledger(world.storage, instant).entries == ()


def test_of_two_at_the_same_moment_one_is_told_of_the_other() -> None:
    world = TransactionTable()
    instant = left_clean(world)
    other = world.writer(lock=NoLock)
    # Asked when nobody is seen to be at it, and right before the claim.
    hook = Hook(1, lambda: begins(other, instant), of=("read_if_present", ".hoodie/lock"))
    with pytest.raises(Conflict) as raised:
        taken(world.writer(storage=hook.storage, **LOCK_IN_A_FILE), instant)
    assert raised.value.code == "instant_held"
    assert len(read_ledger(world.storage, instant).entries) == 1


def test_what_java_has_begun_is_left_to_it_for_a_while() -> None:
    world = TransactionTable()
    instant = left_clean(world)
    world.storage.put(f".hoodie/timeline/{instant}.clean.inflight", b"")
    live = taken(world.writer(), instant).live
    assert live is not None
    assert live.owner == JAVA
    world.clock.advance(DEAD_AFTER_MS)
    assert taken(world.writer(), instant).attempt is not None


def test_a_plan_that_was_cut_short_is_removed_and_no_other() -> None:
    world = TransactionTable()
    torn, whole = left_clean(world), left_clean(world)
    path = f".hoodie/timeline/{torn}.clean.requested"
    world.storage.put(path, world.storage.read(path)[:20])
    with pytest.raises(Conflict) as raised:
        removed(world.writer(lock=lambda: LosesItself(1)), torn)
    assert raised.value.code == "lock_lost"
    assert [removed(world.writer(), one) for one in (whole, torn, torn)] == [False, True, True]
    assert [one.requested for one in world.timeline().pending()] == [whole]


def removed(own: Writer, instant: str) -> bool:
    return remove_torn(own.context, Action.CLEAN, instant)


def test_after_an_outage_at_any_call_nobody_is_at_it() -> None:
    world = TransactionTable()
    whole = world.writer(FaultPlan())
    assert taken(whole, left_clean(world)).attempt is not None
    assert isinstance(whole.storage, FaultyStorage)
    for call in whole.storage.calls:
        world = TransactionTable()
        instant = left_clean(world)
        own = world.writer(FaultPlan((Fault(call.number, FaultKind.FAIL_BEFORE),)))
        with suppress(LakewardenError):
            done = taken(own, instant)
            assert done.attempt is not None
            done.attempt.stop()
        world.clock.advance(DEAD_AFTER_MS)
        own.background.tick()
        assert taken(world.writer(), instant).attempt is not None, call
