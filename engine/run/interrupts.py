"""Interrupts: SIGTERM and Ctrl-C make a process let go of what it has in hand before it ends.

The machine's own answer to SIGTERM ends a process on the spot, and what it had claimed would have
to wait until its last heartbeat is too old. So as long as an attempt runs, SIGTERM is raised as
an exception in the main thread, whose handlers give the attempt up; then the signal is given again
to whoever was to have it.
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
    """For work that nobody calls off."""


@contextmanager
def stopping_on_signal() -> Iterator[None]:
    """Have SIGTERM raised as `Terminated` in here, and given again when all has been let go of.

    Only the main thread has signals: elsewhere this does nothing. A handler that somebody has
    installed for SIGTERM is called at the end, one for Ctrl-C at once.
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
        # Whoever handles Ctrl-C without an exception wants the work to go on.
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
