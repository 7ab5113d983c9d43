"""Attempts: alive as long as they say so, and allowed to go on as long as the ledger says so."""

from collections.abc import Callable

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.claims import append_claim
from lakewarden.engine.storage.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.storage.faults import FaultyStorage
from lakewarden.engine.timeline.beats import read_beat, standard_path
from lakewarden.engine.timeline.ledger import Appended, read_ledger
from tests.engine.plans.world import World, Writer


def begun() -> tuple[World, Writer, Attempt]:
    world = World()
    writer = world.writer()
    return world, writer, writer.begin()


def taken_over(world: World, attempt: Attempt) -> None:
    other = world.writer().context
    ledger = read_ledger(world.storage, attempt.instant)
    assert isinstance(append_claim(other, ledger, attempt.action, "other"), Appended)


def test_names_of_files_carry_task_and_attempt() -> None:
    _, _, attempt = begun()
    assert attempt.write_token(7) == "7-0-1"


def test_beats_go_on_in_the_background_and_tell_the_progress() -> None:
    world, writer, attempt = begun()
    attempt.tell("write", done=2, total=5, bytes_done=70)
    world.clock.advance(30_000)
    writer.background.tick()
    beat = read_beat(world.storage, attempt.instant, 1)
    assert beat is not None
    assert (beat.at_ms, beat.step, beat.done, beat.total, beat.bytes) == (
        world.clock.now_ms(),
        "write",
        2,
        5,
        70,
    )
    standard = world.storage.stat(standard_path(attempt.instant))
    assert standard is not None
    assert standard.modified_ms == world.clock.now_ms()


def test_leaving_stops_the_beats_and_takes_the_last_one_away() -> None:
    world, writer, attempt = begun()
    with attempt:
        pass
    writer.background.tick()
    assert read_beat(world.storage, attempt.instant, 1) is None


def outage_after_begin(world: World, calls: int) -> Writer:
    """A writer whose storage fails for some calls once its first attempt has begun."""
    calm = World().writer(FaultPlan())
    calm.begin()
    assert isinstance(calm.storage, FaultyStorage)
    begun_with = len(calm.storage.calls)
    numbers = range(begun_with + 1, begun_with + 1 + calls)
    return world.writer(FaultPlan(tuple(Fault(n, FaultKind.FAIL_BEFORE) for n in numbers)))


def test_an_attempt_that_could_not_beat_for_too_long_stops_itself() -> None:
    world = World()
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


def test_a_beat_that_failed_once_does_no_harm() -> None:
    world = World()
    writer = outage_after_begin(world, calls=1)
    attempt = writer.begin()
    for _ in range(5):
        world.clock.advance(30_000)
        writer.background.tick()
    attempt.assert_mine()


def cancelled(world: World, attempt: Attempt) -> None:
    cancel(world.writer().context, attempt.instant, "in the way", by="somebody", force=True)


@pytest.mark.parametrize(
    ("meanwhile", "code"), [(taken_over, "superseded"), (cancelled, "cancelled")]
)
def test_an_attempt_sees_that_it_lost_its_claim_within_a_second(
    meanwhile: Callable[[World, Attempt], None], code: str
) -> None:
    world, _, attempt = begun()
    meanwhile(world, attempt)
    attempt.assert_mine()
    world.clock.advance(1_000)
    with pytest.raises(Conflict) as raised:
        attempt.assert_mine()
    assert raised.value.code == code


def test_the_ledger_is_looked_at_once_a_second_at_most() -> None:
    world = World()
    writer = world.writer(FaultPlan())
    attempt = writer.begin()
    assert isinstance(writer.storage, FaultyStorage)
    before = len(writer.storage.calls)
    for _ in range(10):
        world.clock.advance(100)
        attempt.assert_mine()
    assert [call.operation for call in writer.storage.calls[before:]] == ["list", "read"]


def test_the_beats_of_a_cancelled_attempt_go_on_until_its_work_stops() -> None:
    """Others leave its files to it as long as it may still write some."""
    world, writer, attempt = begun()
    cancelled(world, attempt)
    world.clock.advance(30_000)
    writer.background.tick()
    beat = read_beat(world.storage, attempt.instant, 1)
    assert beat is not None
    assert beat.at_ms == world.clock.now_ms()
