"""The guard: one attempt at a plan at a time, and none at a plan that is to be rolled back."""

import pytest

from lakewarden.engine.formats.payloads import compaction, rollback
from lakewarden.engine.formats.payloads.rollback import InstantReference, RollbackPlan
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.plans.publish import publish
from lakewarden.engine.plans.start import start
from lakewarden.engine.timeline.beats import standard_path
from lakewarden.engine.timeline.instant import Action, State
from lakewarden.engine.timeline.ledger import read_ledger
from tests.engine.plans.world import DEAD_AFTER_MS, World, Writer


def plan(world: World, *, cancellable: bool = False) -> str:
    content = compaction.encode_plan(
        compaction.CompactionPlan(extra_metadata={CANCELLABLE_KEY: str(cancellable).lower()})
    )
    return publish(world.writer().context, Action.COMPACTION, content, claims=False).instant


def started(own: Writer, instant: str) -> Attempt:
    attempt = start(own.context, instant).attempt
    assert attempt is not None
    return attempt


def refusal(world: World, instant: str) -> str:
    with pytest.raises(Conflict) as raised:
        start(world.writer().context, instant)
    return raised.value.code


def test_a_plan_is_carried_out_and_committed() -> None:
    world = World()
    instant = plan(world)
    own = world.writer()
    attempt = started(own, instant)
    assert [i.state for i in world.timeline().instants] == [State.INFLIGHT]
    own.commit(attempt, own.write_file(attempt, "f1"))
    (done,) = world.timeline().instants
    assert (done.action, done.requested) == (Action.COMMIT, instant)


def test_a_plan_that_was_cut_short_is_not_begun() -> None:
    world = World()
    instant = plan(world)
    (requested,) = world.timeline().instants
    path = world.timeline().path(requested)
    world.storage.put(path, world.storage.read(path)[:20])
    assert refusal(world, instant) == "plan_torn"
    assert [i.state for i in world.timeline().instants] == [State.REQUESTED]
    assert read_ledger(world.storage, instant).entries == ()


def test_a_plan_that_has_completed_needs_no_attempt() -> None:
    world = World()
    instant = plan(world)
    own = world.writer()
    attempt = started(own, instant)
    own.commit(attempt, own.write_file(attempt, "f1"))
    answer = start(world.writer().context, instant)
    assert answer.attempt is None
    assert answer.completed is not None


def test_immutable_a_a_live_attempt_keeps_others_out() -> None:
    world = World()
    instant = plan(world)
    started(world.writer(), instant)
    assert refusal(world, instant) == "plan_held"


def test_immutable_b_a_dead_attempt_is_taken_over_and_its_files_go() -> None:
    world = World()
    instant = plan(world)
    dead = world.writer()
    dead.write_file(started(dead, instant), "f1")
    world.clock.advance(DEAD_AFTER_MS)
    own = world.writer()
    attempt = started(own, instant)
    assert attempt.number == 2
    assert world.data_files() == frozenset()
    own.commit(attempt, own.write_file(attempt, "f1"))
    assert world.data_files() == world.visible()


def test_immutable_c_a_paused_attempt_cannot_commit_after_a_take_over() -> None:
    world = World()
    instant = plan(world)
    slow, fast = world.writer(), world.writer()
    paused = started(slow, instant)
    world.clock.advance(DEAD_AFTER_MS)
    attempt = started(fast, instant)
    fast.commit(attempt, fast.write_file(attempt, "f1"))
    with pytest.raises(Conflict) as raised:
        slow.commit(paused, slow.write_file(paused, "f1"))
    assert raised.value.code == "superseded"
    assert len(world.visible()) == 1


def test_a_cancellable_plan_has_one_attempt_only() -> None:
    world = World()
    instant = plan(world, cancellable=True)
    started(world.writer(), instant)
    world.clock.advance(DEAD_AFTER_MS)
    assert refusal(world, instant) == "plan_not_executable"


def test_a_plan_that_a_rollback_targets_is_not_carried_out() -> None:
    world = World()
    instant = plan(world)
    content = rollback.encode_plan(
        RollbackPlan(instant_to_rollback=InstantReference(commit_time=instant, action="compaction"))
    )
    publish(world.writer().context, Action.ROLLBACK, content, claims=False)
    assert refusal(world, instant) == "plan_not_executable"


def test_a_cancelled_plan_is_not_carried_out() -> None:
    world = World()
    instant = plan(world)
    attempt = started(world.writer(), instant)
    cancel(world.writer().context, attempt.instant, "in the way", force=True)
    assert refusal(world, instant) == "plan_cancelled"


def test_a_plan_that_java_carries_out_is_held() -> None:
    world = World()
    instant = plan(world)
    world.storage.put(standard_path(instant), b"")
    assert refusal(world, instant) == "plan_held"


def test_what_is_no_pending_plan_is_refused() -> None:
    world = World()
    write = world.writer().begin()
    for instant in (write.instant, "20200101000000000"):
        with pytest.raises(InvalidRequest) as raised:
            start(world.writer().context, instant)
        assert raised.value.code == "unknown_plan"
