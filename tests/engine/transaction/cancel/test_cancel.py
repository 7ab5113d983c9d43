"""Cancelling: acknowledged once, it holds for ever."""

from collections.abc import Callable
from itertools import count

import pytest

from lakewarden.engine.formats.instant_metadata import (
    clean,
    compaction,
    restore,
    rollback,
)
from lakewarden.engine.formats.instant_metadata.rollback import InstantReference
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger, read_ledger
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import (
    LOOK_EVERY_SECONDS,
    Cleanup,
    Ending,
    acknowledge,
    cancel,
)
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.context import Service
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from tests.engine.transaction.plans import published, started
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable

DEAD_AFTER_SECONDS = DEAD_AFTER_MS / 1000


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


def plan(world: TransactionTable, *, cancellable: bool = True) -> str:
    content = plan_of(cancellable=cancellable)
    return publish(world.writer().context, Action.COMPACTION, content, claims=False).instant


def refusal(world: TransactionTable, instant: str, *, force: bool = False) -> str:
    """The code of the refusal, which a dry run foresees, and which changes nothing."""
    before = {entry.path for entry in world.storage.walk("")}
    dry_run_result = cancel(
        world.writer().context, instant, "in the way", force=force, dry_run=True
    )
    assert dry_run_result.outcome is Ending.REFUSED
    with pytest.raises((InvalidRequest, Conflict)) as raised:
        cancel(world.writer().context, instant, "in the way", force=force)
    assert {entry.path for entry in world.storage.walk("")} == before
    assert dry_run_result.message == str(raised.value)
    return raised.value.code


def test_a_cancelled_plan_leaves_the_timeline_by_an_ordinary_rollback() -> None:
    world = TransactionTable()
    instant = plan(world)
    answer = cancel(world.writer().context, instant, "in the way", by="somebody")
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
    assert answer.service is Service.COMPACTION
    assert answer.rolled_back is not None
    (left,) = world.timeline().instants
    assert (left.action, left.requested) == (Action.ROLLBACK, answer.rolled_back.rollback)


def test_the_ledger_keeps_what_the_next_plan_has_to_take_over() -> None:
    world = TransactionTable()
    instant = plan(world)
    answer = cancel(world.writer().context, instant, "in the way", by="somebody")
    entry = read_ledger(world.storage, instant).last
    assert isinstance(entry, Cancelled)
    assert (entry.by, entry.reason) == ("somebody", "in the way")
    assert (entry.partitions, entry.missing_partitions) == (("p=a", "p=b"), ("p=c",))
    assert answer.handed_back == ("p=a", "p=b", "p=c")


def test_cancelling_again_says_so() -> None:
    world = TransactionTable()
    instant = plan(world)
    for expected in (Ending.CANCELLED, Ending.ALREADY_CANCELLED, Ending.ALREADY_CANCELLED):
        answer = cancel(world.writer().context, instant, "in the way")
        assert (answer.outcome, answer.cleanup) == (expected, Cleanup.DONE)
        assert answer.handed_back == ("p=a", "p=b", "p=c")


def test_the_first_cancel_holds_while_the_attempt_still_stops() -> None:
    world = TransactionTable()
    instant = published(world)
    started(world.writer(), instant)
    for expected in (Ending.CANCELLED, Ending.ALREADY_CANCELLED):
        answer = cancel(world.writer().context, instant, expected.value)
        assert (answer.outcome, answer.cleanup) == (expected, Cleanup.LEFT_TO_ATTEMPT)
    entry = read_ledger(world.storage, instant).last
    assert isinstance(entry, Cancelled)
    assert entry.reason == Ending.CANCELLED.value


def test_what_somebody_has_rolled_back_without_a_ledger_is_cancelled_already() -> None:
    world = TransactionTable()
    instant = plan(world)
    cancel(world.writer().context, instant, "in the way")
    world.storage.delete_folder(f".hoodie/.lakewarden/ledger/{instant}")
    answer = cancel(world.writer().context, instant, "in the way")
    assert (answer.outcome, answer.action) == (Ending.ALREADY_CANCELLED, Action.COMPACTION)


def test_what_has_committed_cannot_be_cancelled() -> None:
    world = TransactionTable()
    receipt = world.writer().write("f1")
    answer = cancel(world.writer().context, receipt.instant, "too late", force=True)
    assert (answer.outcome, answer.cleanup) == (Ending.ALREADY_COMMITTED, None)
    assert answer.completed == receipt.completion_time
    assert len(world.visible()) == 1


def test_a_plan_that_is_not_cancellable_needs_force() -> None:
    world = TransactionTable()
    instant = plan(world, cancellable=False)
    assert refusal(world, instant) == "not_cancellable"
    assert cancel(world.writer().context, instant, "now", force=True).outcome is Ending.CANCELLED


NEVER = {
    Action.ROLLBACK: rollback.encode_plan(
        rollback.RollbackPlan(
            instant_to_rollback=InstantReference(commit_time="20200101000000000", action="commit")
        )
    ),
    Action.RESTORE: restore.encode_plan(restore.RestorePlan()),
}


@pytest.mark.parametrize("action", NEVER)
def test_what_cannot_be_taken_back_is_not_cancelled_even_with_force(action: Action) -> None:
    world = TransactionTable()
    instant = publish(world.writer().context, action, NEVER[action], claims=False).instant
    assert refusal(world, instant, force=True) == "not_cancellable"


def clean_plan(world: TransactionTable) -> str:
    content = clean.encode_plan(clean.CleanPlan(policy="KEEP_LATEST_COMMITS"))
    return publish(world.writer().context, Action.CLEAN, content, claims=False).instant


def test_a_clean_that_nobody_has_begun_leaves_the_timeline_without_a_trace() -> None:
    world = TransactionTable()
    instant = clean_plan(world)
    answer = cancel(world.writer().context, instant, "in the way")
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
    assert world.timeline().instants == ()


def test_a_clean_that_was_begun_is_not_cancelled_even_with_force() -> None:
    world = TransactionTable()
    inflight, claimed = clean_plan(world), clean_plan(world)
    world.storage.put(f".hoodie/timeline/{inflight}.clean.inflight", b"")
    answer = append_claim(world.writer().context, Ledger(claimed), Action.CLEAN, "somebody")
    assert isinstance(answer, Appended)
    for instant in (inflight, claimed):
        assert refusal(world, instant, force=True) == "not_cancellable"


def test_a_live_attempt_is_left_to_see_it_and_removes_its_own_files() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    answer = cancel(world.writer().context, attempt.instant, "in the way", force=True)
    assert (answer.outcome, answer.cleanup) == (Ending.CANCELLED, Cleanup.LEFT_TO_ATTEMPT)
    assert answer.held_by is not None
    assert (answer.held_by.owner, answer.held_by.host) == (attempt.owner, "host")
    assert answer.held_by.expires_ms == world.clock.now_ms() + 120_000
    assert len(world.data_files()) == 1
    with pytest.raises(Conflict) as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "cancelled"
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


def test_who_waits_removes_what_an_attempt_has_left_that_stopped_meanwhile() -> None:
    world = TransactionTable()
    own = world.writer()
    instant = plan(world)
    stat = own.write_file(started(own, instant), "f1")
    context = world.writer().context
    before = context.ports.clock.elapsed_seconds()
    answer = cancel(context, instant, "in the way", wait_seconds=600)
    waited = context.ports.clock.elapsed_seconds() - before
    assert DEAD_AFTER_SECONDS <= waited <= DEAD_AFTER_SECONDS + LOOK_EVERY_SECONDS
    assert (answer.outcome, answer.cleanup, answer.held_by) == (
        Ending.CANCELLED,
        Cleanup.DONE,
        None,
    )
    assert (answer.removed_files, answer.reclaimed_bytes) == (1, stat.file_size_in_bytes)
    assert world.data_files() == frozenset()


def test_waiting_ends_with_the_time_that_was_given() -> None:
    world = TransactionTable()
    own = world.writer()
    instant = plan(world)
    own.write_file(started(own, instant), "f1")
    context = world.writer().context
    before = context.ports.clock.elapsed_seconds()
    answer = cancel(context, instant, "in the way", wait_seconds=10)
    assert context.ports.clock.elapsed_seconds() - before == pytest.approx(10)
    assert answer.cleanup is Cleanup.LEFT_TO_ATTEMPT


def test_what_a_dead_attempt_has_made_is_counted_and_removed() -> None:
    world = TransactionTable()
    dead = world.writer()
    instant = plan(world)
    stat = dead.write_file(started(dead, instant), "f1", "p=b")
    world.gone.add(1)
    context = world.writer().context
    dry_run_result = cancel(context, instant, "in the way", dry_run=True)
    answer = cancel(context, instant, "in the way")
    for one in (dry_run_result, answer):
        assert (one.outcome, one.cleanup) == (Ending.CANCELLED, Cleanup.DONE)
        assert (one.removed_files, one.reclaimed_bytes) == (1, stat.file_size_in_bytes)
        assert one.handed_back == ("p=a", "p=b", "p=c")


def test_a_dry_run_changes_nothing() -> None:
    world = TransactionTable()
    instant = plan(world)
    before = {entry.path for entry in world.storage.walk("")}
    for _ in range(2):
        answer = cancel(world.writer().context, instant, "in the way", dry_run=True)
        assert (answer.outcome, answer.is_dry_run) == (Ending.CANCELLED, True)
    assert {entry.path for entry in world.storage.walk("")} == before
    cancel(world.writer().context, instant, "in the way")
    answer = cancel(world.writer().context, instant, "in the way", dry_run=True)
    assert (answer.outcome, answer.is_dry_run) == (Ending.ALREADY_CANCELLED, True)


def test_a_live_write_needs_force() -> None:
    world = TransactionTable()
    attempt = world.writer().begin()
    assert refusal(world, attempt.instant) == "instant_held"


def test_a_plan_that_java_carries_out_needs_force_and_is_told_to_be_javas() -> None:
    world = TransactionTable()
    instant = plan(world)
    world.storage.put(standard_path(instant), b"")
    assert refusal(world, instant) == "instant_held"
    forced = cancel(world.writer().context, instant, "now", force=True)
    assert (forced.outcome, forced.cleanup) == (Ending.CANCELLED, Cleanup.LEFT_TO_ATTEMPT)
    assert "Java Hudi" in forced.message
    world.clock.advance(DEAD_AFTER_MS)
    assert cancel(world.writer().context, instant, "now").cleanup is Cleanup.DONE


def test_a_plan_that_nobody_has_begun_is_cancelled_without_listing_any_partition() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    instant = plan(world)
    own = world.writer(FaultPlan())
    cancel(own.context, instant, "in the way")
    assert isinstance(own.storage, FaultyStorage)
    listed = {c.path for c in own.storage.calls if c.operation in ("list", "walk")}
    assert all(path.startswith(".hoodie/") for path in listed)


def test_a_large_plan_is_acknowledged_by_as_few_calls_as_a_small_one() -> None:
    counts = set()
    for partitions in (1, 500):
        world = TransactionTable()
        for number in range(3):
            world.writer().write(f"f{number}")
        groups = tuple((f"p={number}", f"f{number}") for number in range(partitions))
        instant = published(world, groups=groups)
        started(world.writer(), instant)
        own = world.writer(FaultPlan())
        assert acknowledge(own.context, instant, "in the way").outcome is Ending.CANCELLED
        assert isinstance(own.storage, FaultyStorage)
        counts.add(len(own.storage.calls))
    (count_of_both,) = counts
    assert count_of_both < 20


@pytest.mark.parametrize("planned", [plan, clean_plan])
def test_a_cleanup_that_fails_does_not_hide_that_it_is_cancelled(
    planned: Callable[[TransactionTable], str],
) -> None:
    """One call fails, whichever: either nothing came of it, or it is cancelled and says so."""
    endings = set()
    for number in count(1):
        world = TransactionTable()
        instant = planned(world)
        own = world.writer(FaultPlan((Fault(number, FaultKind.FAIL_BEFORE),)))
        try:
            answer = cancel(own.context, instant, "in the way")
        except LakewardenError:
            assert not isinstance(read_ledger(world.storage, instant).last, Cancelled)
            continue
        is_pending = instant in {i.requested for i in world.timeline().pending()}
        assert answer.outcome is Ending.CANCELLED
        assert answer.cleanup is Cleanup.DUE or not is_pending
        endings.add(answer.cleanup)
        recover_failed_instants(world.writer().context)
        assert world.timeline().pending() == ()
        assert isinstance(own.storage, FaultyStorage)
        if len(own.storage.calls) < number:
            break
    assert endings == {Cleanup.DUE, Cleanup.DONE}


def test_what_was_never_there_is_unknown() -> None:
    for dry_run in (False, True):
        with pytest.raises(InvalidRequest) as raised:
            cancel(
                TransactionTable().writer().context,
                "20231114221320000",
                "in the way",
                dry_run=dry_run,
            )
        assert raised.value.code == "unknown_instant"
