"""The commit: what was written is there for good, or not at all."""

from dataclasses import replace

import pytest

from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import compaction, rollback
from lakewarden.engine.formats.instant_metadata.rollback import InstantReference, RollbackPlan
from lakewarden.engine.kernel.errors import Conflict, Defect, LakewardenError, Unsettled
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.commit import commit
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.transaction.sweep.sweep import sweep_path
from tests.engine.transaction.fake_locks import LosesItself
from tests.engine.transaction.transaction_table import TransactionTable, Writer


def test_a_write_becomes_visible_with_its_commit() -> None:
    world = TransactionTable()
    receipt = world.writer().write("f1", "f2")
    assert world.visible() == world.committed_files() == world.data_files()
    assert len(world.visible()) == 2
    assert receipt.is_published
    assert receipt.completion_time > receipt.instant


@pytest.mark.parametrize("action", [Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT])
def test_every_kind_of_write_commits(action: Action) -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin(action)
    own.commit(attempt, own.write_file(attempt, "f1"))
    assert [i.action for i in world.timeline().completed()] == [action]


def test_after_a_commit_no_marker_and_no_sign_of_life_is_left() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    instant = own.commit(attempt, own.write_file(attempt, "f1")).instant
    own.background.tick()
    left = [path for path in world.traces(instant) if not path.startswith(".hoodie/timeline/")]
    assert left == [f"p=a/f1_0-0-1_{instant}.parquet"]


def assert_nothing_came_of(world: TransactionTable, files: int = 0) -> None:
    assert len(world.data_files()) == files
    assert world.timeline().pending() == ()


def test_of_two_writes_to_one_file_group_the_second_gives_way_and_leaves_nothing() -> None:
    world = TransactionTable()
    slow, fast = world.writer(), world.writer()
    seen = slow.seen()
    attempt = slow.begin()
    stat = slow.write_file(attempt, "f1")
    winner = fast.write("f1")
    with pytest.raises(Conflict) as raised:
        slow.commit(attempt, stat, seen=seen)
    assert (raised.value.code, raised.value.instant) == ("write_conflict", winner.instant)
    assert_nothing_came_of(world, files=1)


def test_writes_to_different_file_groups_do_not_meet() -> None:
    world = TransactionTable()
    slow, fast = world.writer(), world.writer()
    seen = slow.seen()
    attempt = slow.begin()
    stat = slow.write_file(attempt, "f1")
    fast.write("f2")
    slow.commit(attempt, stat, seen=seen)
    assert len(world.visible()) == 2


def plan_on_f1(world: TransactionTable, *, cancellable: bool) -> str:
    operation = compaction.CompactionOperation(
        base_instant_time="1", file_id="f1", partition_path="p=a"
    )
    content = compaction.encode_plan(
        compaction.CompactionPlan(
            operations=(operation,),
            extra_metadata={CANCELLABLE_KEY: str(cancellable).lower()},
        )
    )
    return publish(world.writer().context, Action.COMPACTION, content, claims=False).instant


def test_a_cancellable_plan_gives_way_to_a_write() -> None:
    world = TransactionTable()
    plan = plan_on_f1(world, cancellable=True)
    receipt = world.writer().write("f1")
    assert receipt.preempted == (plan,)
    assert world.timeline().pending() == ()
    assert len(world.visible()) == 1


def test_a_write_gives_way_to_a_plan_that_is_not_cancellable() -> None:
    world = TransactionTable()
    plan = plan_on_f1(world, cancellable=False)
    with pytest.raises(Conflict) as raised:
        world.writer().write("f1")
    assert (raised.value.code, raised.value.instant) == ("write_conflict", plan)
    assert world.data_files() == frozenset()
    assert [i.requested for i in world.timeline().pending()] == [plan]


def test_what_failed_tasks_have_left_is_removed_before_the_commit() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    good, stray = own.write_file(attempt, "f1"), own.write_file(attempt, "f2")
    receipt = own.commit(attempt, good)
    assert receipt.leftovers_deleted == 1
    assert world.data_files() == {good.path}
    assert stray.path not in world.visible()


def test_an_output_that_is_gone_or_cut_fails_the_commit() -> None:
    for damage in (b"", None):
        world = TransactionTable()
        own = world.writer()
        attempt = own.begin()
        stat = own.write_file(attempt, "f1")
        assert stat.path is not None
        if damage is None:
            world.storage.delete(stat.path)
        else:
            world.storage.put(stat.path, damage)
        with pytest.raises(Conflict) as raised:
            own.commit(attempt, stat)
        assert raised.value.code == "output_lost"
        assert_nothing_came_of(world)


def test_t1_an_output_without_a_marker_is_our_own_fault() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    world.storage.delete_folder(f".hoodie/.temp/{attempt.instant}")
    with pytest.raises(Defect) as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "unmarked_output"
    assert_nothing_came_of(world)


def test_t11_a_write_that_an_eager_engine_rolled_back_says_what_to_change() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    for state in ("commit.requested", "inflight"):
        world.storage.delete(f".hoodie/timeline/{attempt.instant}.{state}")
    with pytest.raises(Conflict, match="LAZY") as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "rolled_back_elsewhere"
    assert_nothing_came_of(world)


def test_t11_a_write_that_an_eager_engine_has_begun_to_roll_back_gives_way() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    target = InstantReference(commit_time=attempt.instant, action="commit")
    content = rollback.encode_plan(RollbackPlan(instant_to_rollback=target))
    publish(world.writer().context, Action.ROLLBACK, content, claims=False)
    with pytest.raises(Conflict) as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "rolled_back_elsewhere"
    assert_nothing_came_of(world)


def test_losing_the_lock_before_the_commit_fails_the_write() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    losing = world.writer(lock=lambda: LosesItself(1))
    careless = Writer(replace(own.context, lock=losing.context.lock))
    with pytest.raises(Conflict) as raised:
        careless.commit(attempt, stat)
    assert raised.value.code == "lock_lost"
    recover_failed_instants(world.writer().context)
    assert world.visible() == frozenset()


def calls_of_a_write() -> dict[str, int]:
    """The number of the call that commits, and of the one that publishes."""
    own = TransactionTable().writer(FaultPlan())
    own.write("f1")
    assert isinstance(own.storage, FaultyStorage)
    calls = {call.path: call.number for call in own.storage.calls}
    return {
        "commit": next(n for path, n in calls.items() if path.endswith("000002.json")),
        "publish": next(n for path, n in calls.items() if path.endswith(".commit")),
    }


def faulty(world: TransactionTable, step: str, kind: FaultKind, *more: FaultKind) -> Writer:
    number = calls_of_a_write()[step]
    faults = [Fault(number + offset, each) for offset, each in enumerate((kind, *more))]
    return world.writer(FaultPlan(tuple(faults)))


@pytest.mark.parametrize("kind", [FaultKind.LOST_ANSWER, FaultKind.FAIL_AFTER, FaultKind.RETRIED])
def test_a_commit_in_doubt_is_read_back(kind: FaultKind) -> None:
    world = TransactionTable()
    receipt = faulty(world, "commit", kind).write("f1")
    assert receipt.is_published
    assert len(world.visible()) == 1


@pytest.mark.parametrize("kind", [FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER])
def test_a_commit_that_stays_in_doubt_is_left_to_the_next_operation(kind: FaultKind) -> None:
    world = TransactionTable()
    one = faulty(world, "commit", kind, FaultKind.FAIL_BEFORE)
    seen = one.seen()
    attempt = one.begin()
    stat = one.write_file(attempt, "f1")
    with pytest.raises(LakewardenError) as raised:
        one.commit(attempt, stat, seen=seen)
    assert isinstance(raised.value, Unsettled)
    assert len(world.data_files()) == 1
    world.clock.advance(120_001)
    one.background.tick()
    recover_failed_instants(world.writer().context)
    expected = 1 if kind is FaultKind.LOST_ANSWER else 0
    assert len(world.visible()) == len(world.data_files()) == expected


@pytest.mark.parametrize("kind", [FaultKind.FAIL_BEFORE, FaultKind.FAIL_AFTER, FaultKind.TORN])
def test_a_committed_write_is_no_error_when_it_could_not_be_published(kind: FaultKind) -> None:
    world = TransactionTable()
    one = faulty(world, "publish", kind)
    receipt = one.write("f1")
    assert not receipt.is_published
    events = one.context.ports.events
    assert isinstance(events, EventLog)
    assert len(events.named("committed_not_published")) == 1
    recover_failed_instants(world.writer().context)
    assert len(world.visible()) == 1
    # Others read it without the ledger.
    (done,) = world.timeline().completed()
    assert is_whole_container(world.storage.read(world.timeline().path(done)))


def test_a_savepoint_that_was_cut_short_is_not_read_as_its_write() -> None:
    world = TransactionTable()
    instant = world.writer().write("f1").instant
    world.storage.put(f".hoodie/timeline/{instant}_20991231000000000.savepoint", b"Obj")
    active = world.timeline()
    (savepoint,) = active.savepoints()
    assert active.read(savepoint) == b"Obj"


def test_cleaning_up_that_fails_does_not_fail_a_commit() -> None:
    world = TransactionTable()
    number = calls_of_a_write()["publish"]
    faults = tuple(Fault(number + n, FaultKind.FAIL_BEFORE) for n in range(1, 10))
    own = world.writer(FaultPlan(faults))
    assert own.write("f1").is_published
    events = own.context.ports.events
    assert isinstance(events, EventLog)
    assert len(events.named("left_for_later")) == 1


def test_what_only_the_lock_makes_certain_is_asked_under_it() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    outcome = own.outcome(attempt, own.write_file(attempt, "f1"))
    asked: list[str] = []

    def at_commit(change: TableChange, snapshot: Snapshot) -> TableChange:
        asked.append(change.instant)
        return change

    commit(own.context, attempt, replace(outcome, at_commit=at_commit))
    assert asked == [attempt.instant]


def test_a_commit_sweeps_what_is_due() -> None:
    world = TransactionTable()
    path = sweep_path(1, "20200101000000000")
    world.storage.put(path, b"")
    world.writer().write("f1")
    assert world.storage.stat(path) is None
