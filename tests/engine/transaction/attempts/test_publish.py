"""Publishing: new instants are newer than all others, and Java sees their makers alive."""

from contextlib import suppress
from itertools import count

import pytest

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, Unsettled
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan, StorageCall
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import heartbeat_path, standard_path
from lakewarden.engine.timeline.instants.instant import Action, State
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from tests.engine.transaction.fake_locks import LosesItself, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.just_before import LOCK_IN_A_FILE, JustBefore
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    PROPERTIES,
    LastFirst,
    TransactionTable,
)


def test_instants_increase_strictly_even_within_a_millisecond_and_with_a_clock_set_back() -> None:
    world = TransactionTable()
    times = []
    for move in (0, 0, -200_000, 500, 0):
        world.clock.advance(move)
        published = publish(world.writer().context, Action.COMMIT, claims=False)
        times.append(published.instant)
    assert times == sorted(set(times))


def test_a_new_instant_is_later_than_every_completion_time() -> None:
    world = TransactionTable()
    receipt = world.writer().write("f1")
    world.clock.advance(-1_000)
    next_one = publish(world.writer().context, Action.COMMIT, claims=False)
    assert next_one.instant > receipt.completion_time


def test_a_clock_far_behind_the_table_is_refused_before_anything_is_written() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    world.clock.advance(-301_000)
    before = world.storage.walk("")
    with pytest.raises(Conflict) as raised:
        publish(world.writer().context, Action.COMMIT, claims=True)
    assert raised.value.code == "clock_skew"
    assert world.storage.walk("") == before


def test_t12_the_sign_of_life_for_java_comes_before_the_requested_file() -> None:
    world = TransactionTable()
    writer = world.writer(FaultPlan())
    attempt = writer.begin()
    assert isinstance(writer.storage, FaultyStorage)
    paths = [call.path for call in writer.storage.calls]
    requested = next(path for path in paths if path.endswith(".requested"))
    assert paths.index(standard_path(attempt.instant)) < paths.index(requested)


def test_whoever_works_on_it_at_once_has_the_first_claim() -> None:
    world = TransactionTable()
    attempt = publish(world.writer().context, Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    assert attempt.number == 1
    claim = read_ledger(world.storage, attempt.instant).last_claim
    assert claim is not None
    assert (claim.owner, claim.host, claim.action) == (attempt.owner, "host", Action.DELTA_COMMIT)


def test_a_plan_that_waits_has_neither_claim_nor_sign_of_life() -> None:
    world = TransactionTable()
    published = publish(world.writer().context, Action.COMPACTION, b"plan", claims=False)
    assert published.attempt is None
    assert world.traces(published.instant) == [
        f".hoodie/timeline/{published.instant}.compaction.requested"
    ]


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_whatever_call_of_it_is_interrupted_nobody_goes_on_beating() -> None:
    for at in count(1):
        world, hook = TransactionTable(), Hook(at, press_ctrl_c)
        own = world.writer(storage=hook.storage, **LOCK_IN_A_FILE)
        with suppress(KeyboardInterrupt):
            publish(own.context, Action.COMMIT, claims=True)
        if not hook.has_happened:
            break
        world.clock.advance(DEAD_AFTER_MS)
        own.background.tick()
        recover_failed_instants(world.writer(lock=NoLock).context)
        assert world.timeline().pending() == (), at
    assert at > 5


def test_a_heartbeat_beside_a_claim_that_was_lost_stays_and_is_the_last() -> None:
    world = TransactionTable()

    def another_claims() -> None:
        (pending,) = world.timeline().pending()
        other = world.writer().context
        append_claim(other, Ledger(pending.requested), pending.action, "another")

    def claimed_before(inner: Storage) -> Storage:
        return JustBefore(
            inner, world.clock, another_claims, name="/000001.json", concurrency=LastFirst()
        )

    own = world.writer(storage=claimed_before)
    with pytest.raises(Conflict) as raised:
        publish(own.context, Action.COMMIT, claims=True)
    assert raised.value.code == "superseded"
    (pending,) = world.timeline().pending()
    beat = world.storage.stat(heartbeat_path(pending.requested, 1))
    assert beat is not None
    world.clock.advance(DEAD_AFTER_MS)
    own.background.tick()
    assert world.storage.stat(beat.path) == beat


def test_without_the_lock_nothing_is_published() -> None:
    world = TransactionTable()
    for claims in (True, False):
        with pytest.raises(Conflict) as raised:
            publish(world.writer(lock=lambda: LosesItself(1)).context, Action.COMMIT, claims=claims)
        assert raised.value.code == "lock_lost"
    assert world.timeline().instants == ()


def test_who_was_rolled_back_does_not_come_back_as_inflight() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = publish(own.context, Action.COMMIT, claims=True).attempt
    assert attempt is not None
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    with pytest.raises(Conflict) as raised:
        to_inflight(own.context, attempt)
    assert raised.value.code == "cancelled"
    assert world.timeline().pending() == ()


@pytest.mark.parametrize("kind", [FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER])
def test_an_inflight_file_without_an_answer_is_looked_for(kind: FaultKind) -> None:
    calm = TransactionTable().writer(FaultPlan())
    calm.begin()
    assert isinstance(calm.storage, FaultyStorage)
    (number,) = (call.number for call in calm.storage.calls if is_creation(call))
    world = TransactionTable()
    own = world.writer(FaultPlan((Fault(number, kind),)))
    if kind is FaultKind.LOST_ANSWER:
        own.begin()
    else:
        with pytest.raises(Unsettled) as raised:
            own.begin()
        assert raised.value.code == "publishing_unsettled"


def is_creation(call: StorageCall) -> bool:
    return call.operation == "create_exclusive" and call.path.endswith("inflight")


def test_whoever_finds_his_new_instant_claimed_by_another_lets_it_go() -> None:
    world = TransactionTable()
    instant = world.writer().begin().instant
    world = TransactionTable()
    theirs = world.writer()
    hook = Hook(
        1,
        lambda: append_claim(theirs.context, Ledger(instant), Action.COMMIT, "other"),
        of=("create_exclusive", f".hoodie/timeline/{instant}.commit.requested"),
    )
    with pytest.raises(Conflict) as raised:
        publish(world.writer(storage=hook.storage).context, Action.COMMIT, claims=True)
    assert raised.value.code == "superseded"
    claim = read_ledger(world.storage, instant).last_claim
    assert claim is not None
    assert claim.owner == "other"


def test_going_inflight_twice_is_no_error() -> None:
    world = TransactionTable()
    writer = world.writer()
    attempt = writer.begin()
    to_inflight(writer.context, attempt)
    assert [i.state for i in world.timeline().instants] == [State.INFLIGHT]


def test_a_taken_time_is_left_to_its_owner() -> None:
    world = TransactionTable()
    writer = world.writer(FaultPlan((Fault(4, FaultKind.RETRIED),)))
    published = publish(writer.context, Action.COMMIT, claims=False)
    first, second = world.timeline().instants
    assert second.requested == published.instant > first.requested


@pytest.mark.parametrize("claims", [True, False])
def test_the_time_of_what_was_cancelled_is_not_given_again(claims: bool) -> None:
    world = TransactionTable()
    world.writer().write("f1")
    world.clock.advance(-1_000)
    cancelled = publish(world.writer().context, Action.INDEXING, claims=False).instant
    append_cancelled(
        world.writer().context, Ledger(cancelled), Action.INDEXING, PlanScope(), reason="Of a test."
    )
    for entry in world.storage.list(".hoodie/timeline").files:
        if cancelled in entry.name:
            world.storage.delete(entry.path)
    assert publish(world.writer().context, Action.COMMIT, claims=claims).instant > cancelled


def test_nobody_goes_on_with_an_instant_that_may_or_may_not_be_there() -> None:
    for kind in (FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER):
        world = TransactionTable()
        writer = world.writer(FaultPlan((Fault(5, kind),)))
        with pytest.raises(Unsettled) as raised:
            publish(writer.context, Action.COMMIT, claims=True)
        assert raised.value.code == "publishing_unsettled"
        world.clock.advance(120_001)
        recover_failed_instants(world.writer().context)
        assert world.timeline().pending() == ()


def test_a_claim_in_doubt_is_read_back() -> None:
    world = TransactionTable()
    writer = world.writer(FaultPlan((Fault(6, FaultKind.LOST_ANSWER),)))
    assert publish(writer.context, Action.COMMIT, claims=True).attempt is not None
    world = TransactionTable()
    writer = world.writer(FaultPlan((Fault(6, FaultKind.LOST_REQUEST),)))
    with pytest.raises(Unsettled) as raised:
        publish(writer.context, Action.COMMIT, claims=True)
    assert raised.value.code == "ledger_unsettled"


def test_a_table_of_version_6_with_logs_is_not_written() -> None:
    properties = {
        **PROPERTIES,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
    }
    world = TransactionTable(properties=properties)
    with pytest.raises(InvalidRequest) as raised:
        publish(world.writer().context, Action.COMMIT, claims=True)
    assert raised.value.code == "unsupported_table_version"
