"""Attempts: alive as long as they say so, and allowed to go on as long as the ledger says so."""

from collections.abc import Callable

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import read_heartbeat, standard_path
from lakewarden.engine.timeline.ledger.ledger import Appended, read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.claims import append_claim
from tests.engine.transaction.transaction_table import TransactionTable, Writer


def started() -> tuple[TransactionTable, Writer, Attempt]:
    world = TransactionTable()
    writer = world.writer()
    return world, writer, writer.begin()


def taken_over(world: TransactionTable, attempt: Attempt) -> None:
    other = world.writer().context
    ledger = read_ledger(world.storage, attempt.instant)
    assert isinstance(append_claim(other, ledger, attempt.action, "other"), Appended)


def test_names_of_files_carry_task_and_attempt() -> None:
    _, _, attempt = started()
    assert attempt.write_token(7) == "7-0-1"


def test_heartbeats_go_on_in_the_background_and_tell_the_progress() -> None:
    world, writer, attempt = started()
    attempt.tell("write", done=2, total=5, bytes_done=70)
    world.clock.advance(30_000)
    writer.background.tick()
    heartbeat = read_heartbeat(world.storage, attempt.instant, 1)
    assert heartbeat is not None
    assert (heartbeat.at_ms, heartbeat.step, heartbeat.done, heartbeat.total, heartbeat.bytes) == (
        world.clock.now_ms(),
        "write",
        2,
        5,
        70,
    )
    standard = world.storage.stat(standard_path(attempt.instant))
    assert standard is not None
    assert standard.modified_ms == world.clock.now_ms()


def test_java_writers_without_patience_see_heartbeats_in_between() -> None:
    world = TransactionTable()
    writer = world.writer(lakewarden__heartbeat__touch_ms="5000")
    attempt = writer.begin()
    path = standard_path(attempt.instant)
    seen = []
    for _ in range(7):
        world.clock.advance(5_000)
        writer.background.tick()
        own, standard = read_heartbeat(world.storage, attempt.instant, 1), world.storage.stat(path)
        assert own is not None
        assert standard is not None
        seen.append((own.sequence, world.clock.now_ms() - standard.modified_ms))
    assert seen == [(1, 0)] * 5 + [(2, 0)] * 2


def test_leaving_stops_the_heartbeats_and_takes_the_last_one_away() -> None:
    world, writer, attempt = started()
    with attempt:
        pass
    writer.background.tick()
    assert read_heartbeat(world.storage, attempt.instant, 1) is None


def outage_after_begin(world: TransactionTable, calls: int) -> Writer:
    """A writer whose storage fails for some calls once its first attempt has started."""
    calm = TransactionTable().writer(FaultPlan())
    calm.begin()
    assert isinstance(calm.storage, FaultyStorage)
    begun_with = len(calm.storage.calls)
    numbers = range(begun_with + 1, begun_with + 1 + calls)
    return world.writer(FaultPlan(tuple(Fault(n, FaultKind.FAIL_BEFORE) for n in numbers)))


def test_an_attempt_that_could_not_heartbeat_for_too_long_stops_itself() -> None:
    world = TransactionTable()
    writer = outage_after_begin(world, calls=3)
    attempt = writer.begin()
    world.clock.advance(30_000)
    writer.background.tick()
    attempt.assert_mine()
    world.clock.advance(30_000)
    writer.background.tick()
    with pytest.raises(Conflict) as raised:
        attempt.assert_mine()
    assert raised.value.code == "beats_failed"


def test_a_heartbeat_that_failed_once_does_no_harm() -> None:
    world = TransactionTable()
    writer = outage_after_begin(world, calls=1)
    attempt = writer.begin()
    for _ in range(5):
        world.clock.advance(30_000)
        writer.background.tick()
    attempt.assert_mine()


def cancelled(world: TransactionTable, attempt: Attempt) -> None:
    cancel(world.writer().context, attempt.instant, "in the way", by="somebody", force=True)


@pytest.mark.parametrize(
    ("meanwhile", "code"), [(taken_over, "superseded"), (cancelled, "cancelled")]
)
def test_an_attempt_sees_that_it_lost_its_claim_within_a_second(
    meanwhile: Callable[[TransactionTable, Attempt], None], code: str
) -> None:
    world, _, attempt = started()
    meanwhile(world, attempt)
    attempt.assert_mine()
    world.clock.advance(1_000)
    with pytest.raises(Conflict) as raised:
        attempt.assert_mine()
    assert raised.value.code == code


def test_the_ledger_is_looked_at_once_a_second_at_most() -> None:
    world = TransactionTable()
    writer = world.writer(FaultPlan())
    attempt = writer.begin()
    assert isinstance(writer.storage, FaultyStorage)
    before = len(writer.storage.calls)
    for _ in range(10):
        world.clock.advance(100)
        attempt.assert_mine()
    assert [call.operation for call in writer.storage.calls[before:]] == ["list"]


def test_the_heartbeats_of_a_cancelled_attempt_go_on_until_its_work_stops() -> None:
    """Others leave its files to it as long as it may still write some."""
    world, writer, attempt = started()
    cancelled(world, attempt)
    world.clock.advance(30_000)
    writer.background.tick()
    heartbeat = read_heartbeat(world.storage, attempt.instant, 1)
    assert heartbeat is not None
    assert heartbeat.at_ms == world.clock.now_ms()
