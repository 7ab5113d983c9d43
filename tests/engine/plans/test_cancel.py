"""Cancelling: acknowledged once, it holds for ever."""

import pytest

from lakewarden.engine.formats.payloads import clean, compaction
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.plans.cancel import Ending, cancel
from lakewarden.engine.plans.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.plans.publish import publish
from lakewarden.engine.timeline.beats import standard_path
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.ledger_entries import Cancelled
from tests.engine.plans.world import DEAD_AFTER_MS, World


def plan_of(*, cancellable: bool) -> bytes:
    return compaction.encode_plan(
        compaction.CompactionPlan(
            operations=tuple(
                compaction.CompactionOperation(
                    base_instant_time="1", file_id=file_id, partition_path=partition
                )
                for file_id, partition in (("f1", "p=b"), ("f2", "p=a"), ("f3", "p=a"))
            ),
            missing_schedule_partitions=("p=c",),
            extra_metadata={CANCELLABLE_KEY: str(cancellable).lower()},
        )
    )


def plan(world: World, *, cancellable: bool = True) -> str:
    content = plan_of(cancellable=cancellable)
    return publish(world.writer().context, Action.COMPACTION, content, claims=False).instant


def test_a_cancelled_plan_leaves_the_timeline_by_an_ordinary_rollback() -> None:
    world = World()
    instant = plan(world)
    answer = cancel(world.writer().context, instant, "in the way", by="somebody")
    assert answer.outcome is Ending.CANCELLED
    assert answer.rolled_back is not None
    (left,) = world.timeline().instants
    assert (left.action, left.requested) == (Action.ROLLBACK, answer.rolled_back.rollback)


def test_the_ledger_keeps_what_the_next_plan_has_to_take_over() -> None:
    world = World()
    instant = plan(world)
    cancel(world.writer().context, instant, "in the way", by="somebody")
    entry = read_ledger(world.storage, instant).last
    assert isinstance(entry, Cancelled)
    assert (entry.by, entry.reason) == ("somebody", "in the way")
    assert (entry.partitions, entry.missing_partitions) == (("p=a", "p=b"), ("p=c",))


def test_cancelling_again_says_so() -> None:
    world = World()
    instant = plan(world)
    for expected in (Ending.CANCELLED, Ending.ALREADY_CANCELLED, Ending.ALREADY_CANCELLED):
        assert cancel(world.writer().context, instant, "in the way").outcome is expected


def test_what_has_committed_cannot_be_cancelled() -> None:
    world = World()
    receipt = world.writer().write("f1")
    answer = cancel(world.writer().context, receipt.instant, "too late", force=True)
    assert answer.outcome is Ending.ALREADY_COMMITTED
    assert answer.completed == receipt.completion_time
    assert len(world.visible()) == 1


def test_a_plan_that_is_not_cancellable_needs_force() -> None:
    world = World()
    instant = plan(world, cancellable=False)
    with pytest.raises(InvalidRequest) as raised:
        cancel(world.writer().context, instant, "in the way")
    assert raised.value.code == "not_cancellable"
    assert cancel(world.writer().context, instant, "now", force=True).outcome is Ending.CANCELLED


def test_what_cannot_be_taken_back_is_not_cancelled_even_with_force() -> None:
    world = World()
    content = clean.encode_plan(clean.CleanPlan(policy="KEEP_LATEST_COMMITS"))
    instant = publish(world.writer().context, Action.CLEAN, content, claims=False).instant
    with pytest.raises(InvalidRequest) as raised:
        cancel(world.writer().context, instant, "in the way", force=True)
    assert raised.value.code == "not_cancellable"


def test_a_live_attempt_is_left_to_see_it_and_removes_its_own_files() -> None:
    world = World()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    answer = cancel(world.writer().context, attempt.instant, "in the way", force=True)
    assert answer.outcome is Ending.CANCELLED
    assert answer.rolled_back is None
    assert len(world.data_files()) == 1
    with pytest.raises(Conflict) as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "cancelled"
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


def test_a_live_write_is_cancelled_with_force_only() -> None:
    world = World()
    attempt = world.writer().begin()
    with pytest.raises(Conflict) as raised:
        cancel(world.writer().context, attempt.instant, "in the way")
    assert raised.value.code == "instant_held"


def test_a_plan_that_java_carries_out_is_cancelled_with_force_only() -> None:
    world = World()
    instant = plan(world)
    world.storage.put(standard_path(instant), b"")
    with pytest.raises(Conflict) as raised:
        cancel(world.writer().context, instant, "in the way")
    assert raised.value.code == "instant_held"
    world.clock.advance(DEAD_AFTER_MS)
    assert cancel(world.writer().context, instant, "now").outcome is Ending.CANCELLED


def test_an_instant_that_was_never_there_is_refused() -> None:
    with pytest.raises(InvalidRequest) as raised:
        cancel(World().writer().context, "20231114221320000", "in the way")
    assert raised.value.code == "unknown_instant"
