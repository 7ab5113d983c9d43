"""Giving way: cancellable plans make room for writes, and for plans that are not cancellable."""

from dataclasses import replace

import pytest

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.commit import commit
from lakewarden.engine.transaction.start import preempt_plans
from lakewarden.engine.transaction.state.context import Service, reload_under_lock
from tests.engine.transaction.fake_locks import LosesItself
from tests.engine.transaction.plans import SERVICES, published, started
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable, Writer

F1, F2 = FileGroupId("p=a", "f1"), FileGroupId("p=b", "f2")


def pending(world: TransactionTable) -> list[str]:
    return [instant.requested for instant in world.timeline().pending()]


def commit_plan(own: Writer, plan: str) -> tuple[str, ...]:
    """Carry out a plan for f1; who had to give way to it."""
    attempt = started(own, plan)
    with attempt:
        return own.commit(attempt, own.write_file(attempt, "f1")).preempted


def conflict_of(own: Writer, plan: str) -> Conflict:
    with pytest.raises(Conflict) as raised:
        commit_plan(own, plan)
    return raised.value


@pytest.mark.parametrize("service", SERVICES)
def test_a_cancellable_plan_gives_way_to_a_live_write_to_its_file_groups(service: Service) -> None:
    world = TransactionTable()
    plan = published(world, service)
    writing = world.writer()
    seen = writing.seen()
    write = writing.begin()
    stat = writing.write_file(write, "f1")
    loss = conflict_of(world.writer(), plan)
    assert (loss.code, loss.instant) == ("plan_conflict", write.instant)
    assert "under way" in str(loss)
    writing.commit(write, stat, seen=seen)
    assert world.visible() == world.data_files() == {stat.path}
    assert pending(world) == []


@pytest.mark.parametrize("is_cancellable", [True, False])
@pytest.mark.parametrize("service", SERVICES)
def test_every_plan_gives_way_to_a_write_that_has_not_looked_for_plans(
    service: Service, is_cancellable: bool
) -> None:
    world = TransactionTable()
    own, writing = world.writer(), world.writer()
    attempt = started(own, published(world, service, cancellable=is_cancellable))
    write = writing.begin()
    stat = writing.write_file(write, "f1")
    heedless = replace(
        writing.outcome(write, stat), strategy=ConflictStrategy(prefers_writers=True)
    )
    commit(writing.context, write, heedless)
    with pytest.raises(Conflict) as raised:
        own.commit(attempt, own.write_file(attempt, "f1"))
    assert (raised.value.code, raised.value.instant) == ("plan_conflict", write.instant)
    assert world.visible() == {stat.path}


def test_an_immutable_plan_does_not_give_way_to_a_write_that_has_not_committed() -> None:
    world = TransactionTable()
    plan = published(world, cancellable=False)
    writing = world.writer()
    writing.write_file(writing.begin(), "f1")
    commit_plan(world.writer(), plan)
    assert plan in {i.requested for i in world.timeline().completed()}


def test_a_write_elsewhere_does_not_matter() -> None:
    world = TransactionTable()
    plan = published(world)
    writing = world.writer()
    writing.write_file(writing.begin(), "f3")
    commit_plan(world.writer(), plan)


def test_a_dead_write_does_not_matter() -> None:
    world = TransactionTable()
    plan = published(world)
    writing = world.writer()
    writing.write_file(writing.begin(), "f1")
    world.clock.advance(DEAD_AFTER_MS)
    commit_plan(world.writer(), plan)


def test_a_live_write_that_has_announced_nothing_or_was_cancelled_does_not_matter() -> None:
    world = TransactionTable()
    world.writer().begin()
    writing = world.writer()
    write = writing.begin()
    writing.write_file(write, "f1")
    cancel(world.writer().context, write.instant, "not wanted", force=True)
    commit_plan(world.writer(), published(world))


def test_logs_of_a_live_write_stay_valid_over_a_compaction() -> None:
    for service, gives_way in (
        (Service.COMPACTION, False),
        (Service.LOG_COMPACTION, False),
        (Service.CLUSTERING, True),
    ):
        world = TransactionTable()
        plan = published(world, service)
        write = world.writer().begin(Action.DELTA_COMMIT)
        log = f"p=a/.f1_{write.instant}.log.1_0-0-1"
        world.storage.put(f".hoodie/.temp/{write.instant}/{log}.marker.CREATE", b"")
        if gives_way:
            assert conflict_of(world.writer(), plan).code == "plan_conflict"
        else:
            commit_plan(world.writer(), plan)


@pytest.mark.parametrize("is_older", [True, False])
@pytest.mark.parametrize("service", SERVICES)
def test_logs_that_complete_while_a_plan_is_carried_out_are_lost_to_none(
    service: Service, is_older: bool
) -> None:
    """The result of a log compaction comes before the logs of later instants only."""
    world = TransactionTable()
    own, writing = world.writer(), world.writer()
    older = writing.begin(Action.DELTA_COMMIT)
    plan = published(world, service, cancellable=False)
    write = older if is_older else writing.begin(Action.DELTA_COMMIT)
    attempt = started(own, plan)
    stat = replace(writing.write_file(write, "f1"), log_files=("log",))
    heedless = replace(
        writing.outcome(write, stat), strategy=ConflictStrategy(prefers_writers=True)
    )
    commit(writing.context, write, heedless)
    mine = own.write_file(attempt, "f1")
    if service is Service.CLUSTERING or (is_older and service is Service.LOG_COMPACTION):
        with pytest.raises(Conflict) as raised:
            own.commit(attempt, mine)
        assert raised.value.code == "plan_conflict"
        assert " more" not in raised.value.what
    else:
        own.commit(attempt, mine)


def test_a_write_by_java_counts_while_it_gives_signs_of_life() -> None:
    world = TransactionTable()
    plan = published(world)
    java = "20231114221319000"
    world.storage.put(standard_path(java), b"")
    world.storage.put(f".hoodie/timeline/{java}.commit.requested", b"")
    world.storage.put(f".hoodie/timeline/{java}.inflight", b"")
    name = f"f1_1-22-333_{java}.parquet"
    world.storage.put(f".hoodie/.temp/{java}/p=a/{name}.marker.MERGE", b"")
    assert conflict_of(world.writer(), plan).instant == java


@pytest.mark.parametrize("service", SERVICES)
def test_a_write_has_a_live_attempt_at_a_cancellable_plan_give_way(service: Service) -> None:
    world = TransactionTable()
    plan = published(world, service)
    own = world.writer()
    attempt = started(own, plan)
    stat = own.write_file(attempt, "f1")
    receipt = world.writer().write("f1")
    assert receipt.preempted == (plan,)
    with pytest.raises(Conflict) as raised:
        own.commit(attempt, stat)
    assert raised.value.code == "cancelled"
    assert len(world.data_files()) == 1
    assert pending(world) == []


def test_no_plan_is_cancelled_for_a_write_that_gives_way_itself() -> None:
    world = TransactionTable()
    gives_way = published(world, groups=(("p=a", "f1"),))
    stands = published(world, groups=(("p=a", "f2"),), cancellable=False)
    with pytest.raises(Conflict) as raised:
        world.writer().write("f1", "f2")
    assert raised.value.code == "write_conflict"
    assert read_ledger(world.storage, gives_way).ends_in is LedgerEnd.NONE
    assert pending(world) == [gives_way, stands]


def test_a_write_respects_a_cancellable_plan_that_java_carries_out() -> None:
    world = TransactionTable()
    plan = published(world)
    world.storage.put(standard_path(plan), b"")
    with pytest.raises(Conflict) as raised:
        world.writer().write("f1")
    assert (raised.value.code, raised.value.instant) == ("write_conflict", plan)
    assert pending(world) == [plan]


def test_an_immutable_plan_has_cancellable_ones_give_way_at_its_commit() -> None:
    world = TransactionTable()
    soft = published(world, Service.CLUSTERING)
    hard = published(world, cancellable=False)
    assert commit_plan(world.writer(), hard) == (soft,)
    assert pending(world) == []


def test_an_immutable_plan_respects_a_cancellable_one_that_java_carries_out() -> None:
    world = TransactionTable()
    soft = published(world, Service.CLUSTERING)
    world.storage.put(standard_path(soft), b"")
    assert commit_plan(world.writer(), published(world, cancellable=False)) == ()
    assert pending(world) == [soft]


def test_a_cancellable_plan_cancels_no_other() -> None:
    world = TransactionTable()
    first, second = published(world, Service.CLUSTERING), published(world)
    assert commit_plan(world.writer(), second) == ()
    assert pending(world) == [first]


def test_plans_that_hold_file_groups_make_room_for_one_that_is_not_cancellable() -> None:
    world = TransactionTable()
    soft = published(world, Service.CLUSTERING, groups=(("p=a", "f1"),))
    hard = published(world, cancellable=False, groups=(("p=b", "f2"),))
    elsewhere = published(world, groups=(("p=c", "f3"),))
    careless = world.writer(lock=lambda: LosesItself(1)).context
    with careless.lock.hold() as held, pytest.raises(Conflict):
        preempt_plans(careless, held, reload_under_lock(careless), frozenset({F1}), "compaction")
    assert read_ledger(world.storage, soft).ends_in is LedgerEnd.NONE
    context = world.writer().context
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        groups = frozenset({F1, F2})
        assert preempt_plans(context, held, snapshot, groups, "compaction") == (soft,)
    end = read_ledger(world.storage, soft).last
    assert isinstance(end, Cancelled)
    assert end.reason == "pre-empted by compaction"
    for kept in (hard, elsewhere):
        assert read_ledger(world.storage, kept).ends_in is LedgerEnd.NONE
