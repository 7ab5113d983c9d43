"""Interrupts: SIGTERM and Ctrl-C make a process abort its attempt before it ends.

By default SIGTERM ends a process at once, and what it had claimed would wait until its last
heartbeat has expired. So while an attempt runs, SIGTERM is raised as an exception in the main
thread. Its handlers abort the attempt; then the signal is raised again for its first handler.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALLED_BASE = 128
_is_letting_go = threading.Event()


class Terminated(SystemExit):
    """SIGTERM has come. No handler of errors sees it; uncaught it ends the process as usual."""

    def __init__(self) -> None:
        super().__init__(_SIGNALLED_BASE + signal.SIGTERM)


def interruption_watch() -> Callable[[], bool]:
    """Tells whether the caller's work was interrupted; the answer may be asked for by any thread.

    Workers of a pool see no signal themselves, and the main thread waits for them.
    """
    return _is_letting_go.is_set if _is_main() else _never


def always_wanted() -> None:
    """For work that no caller cancels."""


@contextmanager
def stopping_on_signal() -> Iterator[None]:
    """Have SIGTERM raised as `Terminated` in here, and raised again when the attempt is aborted.

    Only the main thread has signals: elsewhere this does nothing. A handler that was installed for
    SIGTERM before is called at the end, one for Ctrl-C at once.
    """
    termination, interruption = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    # What was not installed by Python could not be put back.
    if not _is_main() or termination is None:
        yield
        return
    came: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> NoReturn:
        came.append(number)
        _is_letting_go.set()
        raise Terminated

    def interrupt(number: int, frame: FrameType | None) -> None:
        assert callable(interruption)
        _is_letting_go.set()
        interruption(number, frame)
        # A handler that returns from Ctrl-C without an exception wants the work to continue.
        _is_letting_go.clear()

    signal.signal(signal.SIGTERM, terminate)
    if callable(interruption):
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, termination)
        if callable(interruption):
            signal.signal(signal.SIGINT, interruption)
        _is_letting_go.clear()
        if came:
            signal.raise_signal(signal.SIGTERM)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _never() -> bool:
    return False
