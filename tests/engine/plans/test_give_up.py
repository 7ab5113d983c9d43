"""Giving up: what is interrupted is let go of at once, so that nobody has to wait for it."""

from contextlib import suppress
from itertools import count

import pytest

from lakewarden.engine.plans.failed_writes import settle
from lakewarden.engine.plans.give_up import give_up_after
from lakewarden.engine.plans.service import Service
from lakewarden.engine.plans.start import start
from lakewarden.engine.run.interrupts import Terminated
from lakewarden.engine.timeline.beats import standard_path
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.timeline.ledger_entries import Cancelled, Claim
from tests.engine.plans.hooked import Hook
from tests.engine.plans.plans import SERVICES, published, started
from tests.engine.plans.world import World, Writer

INTERRUPTS = (KeyboardInterrupt, Terminated)


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("service", SERVICES)
def test_an_immutable_plan_is_free_at_once_for_the_next_attempt(
    service: Service, interrupt: type[BaseException]
) -> None:
    world = World()
    plan = published(world, service, cancellable=False)
    own = world.writer()
    attempt = started(own, plan)
    own.write_file(attempt, "f1")
    give_up_after(own.context, attempt, interrupt())
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
    world = World()
    plan = published(world, service)
    own = world.writer()
    attempt = started(own, plan)
    own.write_file(attempt, "f1")
    give_up_after(own.context, attempt, interrupt())
    end = read_ledger(world.storage, plan).last
    assert isinstance(end, Cancelled)
    assert interrupt.__name__ in end.reason
    assert end.partitions == ("p=a", "p=b")
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_a_write_is_rolled_back(interrupt: type[BaseException]) -> None:
    world = World()
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    give_up_after(own.context, attempt, interrupt())
    assert world.data_files() == frozenset()
    assert world.timeline().pending() == ()


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_whatever_call_of_its_start_is_interrupted_no_attempt_goes_on_beating() -> None:
    for at in count(1):
        world, hook = World(), Hook(at, press_ctrl_c)
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
            give_up_after(own.context, attempt, cause)
            raise
        own.commit(attempt, stat)


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_call_is_interrupted_an_immutable_plan_is_done_or_free_at_once(
    service: Service,
) -> None:
    endings = set()
    for at in count(1):
        world, hook = World(), Hook(at, press_ctrl_c)
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
        world, hook = World(), Hook(at, press_ctrl_c)
        plan = published(world, service)
        with suppress(KeyboardInterrupt):
            interrupted(world.writer(storage=hook.storage), plan)
        if not hook.has_happened:
            break
        settle(world.writer().context, with_plans=True)
        files = world.data_files()
        assert files == world.committed_files()
        endings.add(len(files))
    assert endings == {0, 1}
