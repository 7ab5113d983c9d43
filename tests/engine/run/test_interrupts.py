"""Interrupts: what is in hand is let go of first, then the signal goes to whom it was meant for."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType

import pytest

from lakewarden.engine.run.processes import Terminated, interruption_watch, stopping_on_signal


@pytest.fixture
def terminations() -> Iterator[list[int]]:
    """What a handler of our own for SIGTERM has been given."""
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGTERM, remember)
    yield came
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as a process at a terminal has it; those that run tests side by side ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_termination_is_raised_inside_and_given_on_at_the_end(terminations: list[int]) -> None:
    let_go = []

    def work() -> None:
        with stopping_on_signal():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                let_go.append(len(terminations))

    with pytest.raises(Terminated) as raised:
        work()
    assert let_go == [0]
    assert terminations == [signal.SIGTERM]
    assert raised.value.code == 128 + signal.SIGTERM


def test_without_a_signal_the_handlers_are_as_they_were() -> None:
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    with stopping_on_signal():
        assert signal.getsignal(signal.SIGTERM) is not handlers[0]
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == handlers


def test_inside_of_another_one_both_let_go(terminations: list[int]) -> None:
    let_go = []

    def work(name: str, inner: Callable[[], None]) -> None:
        with stopping_on_signal():
            try:
                inner()
            finally:
                let_go.append(name)

    with pytest.raises(Terminated):
        work("outer", lambda: work("inner", lambda: signal.raise_signal(signal.SIGTERM)))
    assert let_go == ["inner", "outer"]
    assert terminations == [signal.SIGTERM]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_learn_of_it_while_the_main_thread_waits_for_them(
    number: signal.Signals, terminations: list[int]
) -> None:
    is_interrupted = interruption_watch()
    seen = []

    def work() -> None:
        while not is_interrupted():
            pass
        seen.append(True)

    with suppress(Terminated, KeyboardInterrupt), stopping_on_signal():
        worker = threading.Thread(target=work)
        worker.start()
        try:
            signal.raise_signal(number)
        finally:
            worker.join()
    assert seen == [True]
    assert not is_interrupted()


def test_a_handler_that_goes_on_after_ctrl_c_is_respected() -> None:
    is_interrupted = interruption_watch()
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    with stopping_on_signal():
        signal.raise_signal(signal.SIGINT)
        assert not is_interrupted()
    signal.signal(signal.SIGINT, before)
    assert came == [True]


def test_another_thread_than_the_main_one_is_not_touched() -> None:
    handler = signal.getsignal(signal.SIGTERM)
    found = []

    def work() -> None:
        with stopping_on_signal():
            found.append((signal.getsignal(signal.SIGTERM), interruption_watch()()))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert found == [(handler, False)]
