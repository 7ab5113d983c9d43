"""Giving up: what is interrupted is let go of at once, so that nobody has to wait for it."""

from contextlib import suppress
from itertools import count

import pytest

from lakewarden.engine.kernel.errors import Conflict, CorruptTable, LakewardenError
from lakewarden.engine.run.processes import Terminated
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.ledger.entries import Cancelled, Claim
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.abort_attempt import abort_attempt_after, aborting_on_error
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Service
from tests.engine.transaction.fake_locks import NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.plans import SERVICES, published, started
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable, Writer

INTERRUPTS = (KeyboardInterrupt, Terminated)


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("service", SERVICES)
def test_an_immutable_plan_is_free_at_once_for_the_next_attempt(
    service: Service, interrupt: type[BaseException]
) -> None:
    world = TransactionTable()
    plan = published(world, service, cancellable=False)
    own = world.writer()
    attempt = started(own, plan)
    own.write_file(attempt, "f1")
    abort_attempt_after(own.context, attempt, interrupt())
    assert isinstance(read_ledger(world.storage, plan).last, Claim)
    # Java need not wait, either.
    assert world.storage.stat(standard_path(plan)) is None
    successor = world.writer()
    second = started(successor, plan)
    assert second.number == 2
    assert world.data_files() == frozenset()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("service", SERVICES)
def test_a_cancellable_plan_is_cancelled_and_leaves_nothing(
    service: Service, interrupt: type[BaseException]
) -> None:
    world = TransactionTable()
    plan = published(world, service)
    own = world.writer()
    attempt = started(own, plan)
    own.write_file(attempt, "f1")
    abort_attempt_after(own.context, attempt, interrupt())
    end = read_ledger(world.storage, plan).last
    assert isinstance(end, Cancelled)
    assert interrupt.__name__ in end.reason
    assert end.partitions == ("p=a", "p=b")
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_a_write_is_rolled_back(interrupt: type[BaseException]) -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    abort_attempt_after(own.context, attempt, interrupt())
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


@pytest.mark.parametrize("service", SERVICES)
def test_giving_up_that_fails_leaves_a_note_and_nobody_beating(service: Service) -> None:
    for at in count(1):
        world = TransactionTable()
        plan = published(world, service)
        own = world.writer()
        attempt = started(own, plan)
        own.write_file(attempt, "f1")
        cause = ValueError("no rows")
        faulty = own.with_storage(FaultyStorage(world.storage, outage_from(at)))
        abort_attempt_after(faulty.context, attempt, cause)
        if not hasattr(cause, "__notes__"):
            break
        assert "The next operation" in cause.__notes__[0]
        world.clock.advance(DEAD_AFTER_MS)
        own.background.tick()
        recover_failed_instants(world.writer().context, with_plans=True)
        assert world.data_files() == frozenset(), at
    assert at > 10


def outage_from(call: int) -> FaultPlan:
    return FaultPlan(tuple(Fault(call + n, FaultKind.FAIL_BEFORE) for n in range(100)))


def test_what_is_missing_because_others_have_ended_the_attempt_is_told_as_that() -> None:
    fault = CorruptTable("missing_file", what="It is gone.", why="It was deleted.", now="Look.")
    for is_cancelled, code in ((True, "cancelled"), (False, "missing_file")):
        world = TransactionTable()
        own = world.writer()
        attempt = own.begin()
        if is_cancelled:
            cancel(world.writer().context, attempt.instant, "in the way", force=True)
        with pytest.raises(LakewardenError) as raised, aborting_on_error(own.context, attempt):
            raise fault
        assert raised.value.code == code
        assert world.timeline().pending() == ()


def test_a_fault_is_told_though_it_cannot_be_seen_whether_others_have_ended_the_attempt() -> None:
    world = TransactionTable()
    plan = published(world)
    own = world.writer()
    attempt = started(own, plan)
    path = f".hoodie/.lakewarden/ledger/{plan}/000003.json"
    world.storage.put(path, b"{}")
    with pytest.raises(CorruptTable, match="It is gone"), aborting_on_error(own.context, attempt):
        raise CorruptTable("missing_file", what="It is gone.", why="It was deleted.", now="Look.")


def test_a_paused_attempt_does_not_cancel_the_one_that_took_over() -> None:
    world = TransactionTable()
    plan = published(world)
    fast = world.writer(lock=NoLock)
    attempts = []

    def takes_over() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        attempts.append(started(fast, plan))

    # It has claimed the plan, and nobody can see that it has started.
    claim = f".hoodie/.lakewarden/ledger/{plan}/000001.json"
    hook = Hook(1, takes_over, of=("create_exclusive", claim))
    with pytest.raises(Conflict) as raised:
        start(world.writer(storage=hook.storage).context, plan)
    assert raised.value.code == "superseded"
    fast.commit(attempts[0], fast.write_file(attempts[0], "f1"))
    assert len(world.visible()) == 1


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_whatever_call_of_its_start_is_interrupted_no_attempt_goes_on_beating() -> None:
    for at in count(1):
        world, hook = TransactionTable(), Hook(at, press_ctrl_c)
        plan = published(world, cancellable=False)
        own = world.writer(storage=hook.storage)
        with suppress(KeyboardInterrupt):
            start(own.context, plan)
        if not hook.has_happened:
            break
        world.clock.advance(30_000)
        own.background.tick()
        assert started(world.writer(), plan).number <= 2
    assert at > 10


def interrupted(own: Writer, plan: str) -> None:
    """Carry a plan out as services do, whose work may be interrupted."""
    attempt = started(own, plan)
    with attempt:
        try:
            stat = own.write_file(attempt, "f1")
        except BaseException as cause:
            abort_attempt_after(own.context, attempt, cause)
            raise
        own.commit(attempt, stat)


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_call_is_interrupted_an_immutable_plan_is_done_or_free_at_once(
    service: Service,
) -> None:
    endings = set()
    for at in count(1):
        world, hook = TransactionTable(), Hook(at, press_ctrl_c)
        plan = published(world, service, cancellable=False)
        with suppress(KeyboardInterrupt):
            interrupted(world.writer(storage=hook.storage), plan)
        if not hook.has_happened:
            break
        answer = start(world.writer().context, plan)
        endings.add(answer.attempt is None)
    assert endings == {True, False}


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_call_is_interrupted_a_cancellable_plan_is_done_or_leaves_nothing(
    service: Service,
) -> None:
    endings = set()
    for at in count(1):
        world, hook = TransactionTable(), Hook(at, press_ctrl_c)
        plan = published(world, service)
        with suppress(KeyboardInterrupt):
            interrupted(world.writer(storage=hook.storage), plan)
        if not hook.has_happened:
            break
        recover_failed_instants(world.writer().context, with_plans=True)
        files = world.data_files()
        assert files == world.committed_files()
        endings.add(len(files))
    assert endings == {0, 1}
