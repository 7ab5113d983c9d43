"""The guard: one attempt at a plan at a time, and none at a plan that is to be rolled back."""

import pytest

from lakewarden.engine.formats.instant_metadata import compaction, rollback
from lakewarden.engine.formats.instant_metadata.rollback import InstantReference, RollbackPlan
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.timeline.heartbeats import heartbeat_path, standard_path
from lakewarden.engine.timeline.instants.instant import Action, State
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER, read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import dry_run_start, start
from lakewarden.engine.transaction.state.context import Service
from lakewarden.engine.transaction.state.markers import marker_folder
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from tests.engine.transaction.fake_locks import LosesItself, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.just_before import LOCK_IN_A_FILE
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable, Writer


def plan(world: TransactionTable, *, cancellable: bool = False) -> str:
    content = compaction.encode_plan(
        compaction.CompactionPlan(extra_metadata={CANCELLABLE_KEY: str(cancellable).lower()})
    )
    return publish(world.writer().context, Action.COMPACTION, content, claims=False).instant


def started(own: Writer, instant: str) -> Attempt:
    attempt = start(own.context, instant).attempt
    assert attempt is not None
    return attempt


def refusal(world: TransactionTable, instant: str) -> str:
    with pytest.raises(Conflict) as raised:
        start(world.writer().context, instant)
    with pytest.raises(Conflict) as dry_run_result:
        dry_run_start(world.writer().context, instant, Service.COMPACTION)
    assert dry_run_result.value.code == raised.value.code
    return raised.value.code


def test_a_plan_is_carried_out_and_committed() -> None:
    world = TransactionTable()
    instant = plan(world)
    own = world.writer()
    attempt = started(own, instant)
    assert [i.state for i in world.timeline().instants] == [State.INFLIGHT]
    own.commit(attempt, own.write_file(attempt, "f1"))
    (done,) = world.timeline().instants
    assert (done.action, done.requested) == (Action.COMMIT, instant)


def test_a_plan_that_was_cut_short_is_not_begun() -> None:
    world = TransactionTable()
    instant = plan(world)
    (requested,) = world.timeline().instants
    path = world.timeline().path(requested)
    world.storage.put(path, world.storage.read(path)[:20])
    assert refusal(world, instant) == "plan_torn"
    assert [i.state for i in world.timeline().instants] == [State.REQUESTED]
    assert read_ledger(world.storage, instant).entries == ()


def test_a_plan_that_has_completed_needs_no_attempt() -> None:
    world = TransactionTable()
    instant = plan(world)
    own = world.writer()
    attempt = started(own, instant)
    own.commit(attempt, own.write_file(attempt, "f1"))
    answer = start(world.writer().context, instant)
    assert answer.attempt is None
    assert answer.completed is not None
    dry_run_start(world.writer().context, instant, Service.COMPACTION)


@pytest.mark.parametrize("is_completed", [True, False])
def test_a_plan_of_another_service_is_refused(is_completed: bool) -> None:
    world = TransactionTable()
    instant = plan(world)
    if is_completed:
        own = world.writer()
        own.commit(started(own, instant))
    context = world.writer().context
    for begins in (start, dry_run_start):
        with pytest.raises(InvalidRequest, match="It is a compaction") as raised:
            begins(context, instant, Service.CLUSTERING)
        assert raised.value.code == "plan_of_another_service"
    assert (start(context, instant, Service.COMPACTION).completed is not None) is is_completed


def test_without_the_lock_nothing_is_claimed() -> None:
    world = TransactionTable()
    instant = plan(world)
    with pytest.raises(Conflict) as raised:
        start(world.writer(lock=lambda: LosesItself(1)).context, instant)
    assert raised.value.code == "lock_lost"
    assert read_ledger(world.storage, instant).entries == ()


@pytest.mark.parametrize(("is_cancelled", "code"), [(True, "plan_cancelled"), (False, "plan_held")])
def test_who_is_too_late_with_his_claim_is_told_why(is_cancelled: bool, code: str) -> None:
    world = TransactionTable()
    instant = plan(world)
    other = world.writer(lock=NoLock)

    def others_are_quicker() -> None:
        if is_cancelled:
            cancel(other.context, instant, "in the way", force=True)
        else:
            started(other, instant)

    # Asked right before the claim.
    hook = Hook(1, others_are_quicker, of=("read_if_present", ".hoodie/lock"))
    own = world.writer(storage=hook.storage, **LOCK_IN_A_FILE)
    with pytest.raises(Conflict) as raised:
        start(own.context, instant)
    assert raised.value.code == code


def test_an_attempt_that_is_cancelled_as_it_starts_leaves_nothing() -> None:
    world = TransactionTable()
    instant = plan(world)
    other = world.writer(lock=NoLock)
    # It sends heartbeats, so that what it leaves is left to it.
    hook = Hook(
        1,
        lambda: cancel(other.context, instant, "in the way", force=True),
        of=("put", heartbeat_path(instant, 1)),
    )
    with pytest.raises(Conflict) as raised:
        start(world.writer(storage=hook.storage).context, instant)
    assert raised.value.code == "cancelled"
    assert world.timeline().pending() == ()


def test_an_attempt_that_is_taken_over_as_it_starts_removes_nothing_of_the_other() -> None:
    world = TransactionTable()
    instant = plan(world)
    dead, fast = world.writer(), world.writer(lock=NoLock)
    dead.write_file(started(dead, instant), "f1")
    world.clock.advance(DEAD_AFTER_MS)
    theirs = []

    def takes_over() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        theirs.append(fast.write_file(started(fast, instant), "f2").path)

    # It knows where to look for the files of earlier attempts, and is to list them.
    hook = Hook(1, takes_over, of=("walk", marker_folder(instant)))
    with pytest.raises(Conflict) as raised:
        start(world.writer(storage=hook.storage).context, instant)
    assert raised.value.code == "superseded"
    assert list(world.data_files()) == theirs


def test_a_plan_that_goes_away_while_it_is_looked_at_is_none() -> None:
    world = TransactionTable()
    instant = plan(world)
    path = f".hoodie/timeline/{instant}.compaction.requested"
    hook = Hook(
        1,
        lambda: world.storage.delete(path),
        of=("list", f"{LEDGER_FOLDER}/{instant}"),
    )
    with pytest.raises(InvalidRequest) as raised:
        dry_run_start(world.writer(storage=hook.storage).context, instant, Service.COMPACTION)
    assert raised.value.code == "unknown_plan"


def test_immutable_a_a_live_attempt_keeps_others_out() -> None:
    world = TransactionTable()
    instant = plan(world)
    attempt = started(world.writer(), instant)
    assert refusal(world, instant) == "plan_held"
    with pytest.raises(Conflict) as raised:
        start(world.writer().context, instant)
    assert (raised.value.owner, raised.value.host) == (attempt.owner, "host")


def test_an_attempt_whose_last_heartbeat_was_cut_short_keeps_others_out_as_well() -> None:
    world = TransactionTable()
    instant = plan(world)
    attempt = started(world.writer(), instant)
    world.storage.put(heartbeat_path(instant, attempt.number), b"{")
    assert refusal(world, instant) == "plan_held"


def test_immutable_b_a_dead_attempt_is_taken_over_and_its_files_go() -> None:
    world = TransactionTable()
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
    world = TransactionTable()
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
    world = TransactionTable()
    instant = plan(world, cancellable=True)
    started(world.writer(), instant)
    world.clock.advance(DEAD_AFTER_MS)
    assert refusal(world, instant) == "plan_not_executable"


def test_a_plan_that_a_rollback_targets_is_not_carried_out() -> None:
    world = TransactionTable()
    instant = plan(world)
    content = rollback.encode_plan(
        RollbackPlan(instant_to_rollback=InstantReference(commit_time=instant, action="compaction"))
    )
    publish(world.writer().context, Action.ROLLBACK, content, claims=False)
    assert refusal(world, instant) == "plan_not_executable"


def test_a_cancelled_plan_is_not_carried_out() -> None:
    world = TransactionTable()
    instant = plan(world)
    attempt = started(world.writer(), instant)
    cancel(world.writer().context, attempt.instant, "in the way", force=True)
    assert refusal(world, instant) == "plan_cancelled"


def test_a_plan_that_java_carries_out_is_held() -> None:
    world = TransactionTable()
    instant = plan(world)
    world.storage.put(standard_path(instant), b"")
    assert refusal(world, instant) == "plan_held"


def test_what_is_no_pending_plan_is_refused() -> None:
    world = TransactionTable()
    write = world.writer().begin()
    for instant in (write.instant, "20200101000000000"):
        with pytest.raises(InvalidRequest) as raised:
            start(world.writer().context, instant)
        assert raised.value.code == "unknown_plan"


def test_lists_that_java_left_at_a_plan_hide_no_marker_of_ours() -> None:
    world = TransactionTable()
    instant = plan(world)
    theirs = f"g1_0-1-2_{instant}.parquet"
    world.storage.put(f".hoodie/timeline/{instant}.compaction.inflight", b"")
    world.storage.put(f"{marker_folder(instant)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    world.storage.put(
        f"{marker_folder(instant)}/MARKERS3", f"p=a/{theirs}.marker.CREATE\n".encode()
    )
    own = world.writer()
    ours = own.write_file(started(own, instant), "f1")
    left = [entry.name for entry in world.storage.walk(marker_folder(instant))]
    named = [str(ours.path).rpartition("/")[2], theirs]
    assert left == [f"{name}.marker.CREATE" for name in named]
