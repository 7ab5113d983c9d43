"""Background work: what is done again and again, or once, while other work goes on.

Heartbeats need it, and what no caller should wait for. With threads it runs by itself; in a
simulation it runs when the test says so, and then a failure replays exactly.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import LakewardenError

TRIED_EVERY_SECONDS = 1.0


class Repetition(Protocol):
    """Work that repeats until it is stopped; stopping twice is no error."""

    def stop(self) -> None: ...


class Background(Protocol):
    """Starts work. The work itself must not raise: it keeps what went wrong."""

    def repeat(self, work: Callable[[], None], *, every_seconds: float) -> Repetition: ...

    def start(self, work: Callable[[], None]) -> None:
        """Do something once; a process does not end before it has."""
        ...


def try_again(
    background: Background, clock: Clock, work: Callable[[], object], *, most_seconds: float
) -> None:
    """Do in the background what has just failed, as soon as it goes through.

    For what others wait for. After that long it is given up.
    """
    _Trying(background, clock, work, clock.elapsed_seconds() + most_seconds)


class _Trying:
    def __init__(
        self, background: Background, clock: Clock, work: Callable[[], object], ends: float
    ) -> None:
        self._work, self._clock, self._ends = work, clock, ends
        self._has_ended = False
        self._repetition = background.repeat(self._try, every_seconds=TRIED_EVERY_SECONDS)

    def _try(self) -> None:
        if self._has_ended:
            self._repetition.stop()
            return
        try:
            self._work()
            self._has_ended = True
        except LakewardenError:
            self._has_ended = self._clock.elapsed_seconds() >= self._ends


class OneAtATime:
    """Work of which a process does one piece at a time; who comes second lets it be."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def begins(self) -> bool:
        return self._lock.acquire(blocking=False)

    def ends(self) -> None:
        self._lock.release()


class ThreadBackground:
    """A thread for each, independent of the storage calls of the work it stands for."""

    def repeat(self, work: Callable[[], None], *, every_seconds: float) -> Repetition:
        return _Thread(work, every_seconds)

    def start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="lakewarden-beside", daemon=False).start()


class ManualBackground:
    """Repetitions that run once whenever `tick` is called; other work is done at once."""

    def __init__(self) -> None:
        self._works: list[Callable[[], None]] = []

    def repeat(self, work: Callable[[], None], *, every_seconds: float) -> Repetition:
        self._works.append(work)
        return _Registered(self._works, work)

    def start(self, work: Callable[[], None]) -> None:
        work()

    def tick(self) -> None:
        for work in list(self._works):
            work()


class _Thread:
    def __init__(self, work: Callable[[], None], every_seconds: float) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(work, every_seconds), name="lakewarden-beat", daemon=True
        )
        self._thread.start()

    def _run(self, work: Callable[[], None], every_seconds: float) -> None:
        while not self._stopped.wait(every_seconds):
            work()

    def stop(self) -> None:
        """After this the work does not run any more; a run under way is waited for."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()


class _Registered:
    def __init__(self, works: list[Callable[[], None]], work: Callable[[], None]) -> None:
        self._works = works
        self._work = work

    def stop(self) -> None:
        if self._work in self._works:
            self._works.remove(self._work)
