"""The executor port: run tasks, return their results in order.

Background work: what is done again and again, or once, while other work goes on.

Heartbeats need it, and what no caller should wait for. With threads it runs by itself; in a
simulation it runs when the test says so, and then a failure replays exactly.

Working ahead: the next items are made while the present one is being used.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Final, Protocol, TypeVar

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import PROGRESS, Event, EventSink, Figures

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


THREAD_NAME = "lakewarden"

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


class Executor(Protocol):
    """Runs a function over tasks; the first failure ends the run and is raised."""

    @property
    def workers(self) -> int:
        """How many tasks run at the same time."""
        ...

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]: ...


class LocalExecutor:
    """Threads of this process; Arrow's readers and writers release the interpreter lock."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or available_cores()

    @property
    def workers(self) -> int:
        return self._workers

    def map(
        self,
        function: Callable[[TaskT], ResultT],
        tasks: Iterable[TaskT],
        *,
        ahead: int | None = None,
    ) -> Iterator[ResultT]:
        """Results in the order of the tasks, which may come one by one.

        At most `ahead` results wait to be taken, by default as many as there are workers.
        """
        if self._workers == 1 or (isinstance(tasks, Sequence) and len(tasks) <= 1):
            yield from map(function, tasks)
            return
        ahead = ahead or self._workers
        with ThreadPoolExecutor(self._workers, thread_name_prefix=THREAD_NAME) as pool:
            waiting: deque[Future[ResultT]] = deque()
            try:
                for task in tasks:
                    waiting.append(pool.submit(function, task))
                    if len(waiting) > ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def start(self, function: Callable[[], ResultT]) -> Callable[[], ResultT]:
        """Begin with what is needed later; the answer waits for the result and gives it.

        A single worker has no time to spare: it begins when it is asked.
        """
        if self._workers == 1:
            return cache(function)
        pool = ThreadPoolExecutor(1, thread_name_prefix=THREAD_NAME)
        future = pool.submit(function)
        pool.shutdown(wait=False)
        return future.result


class ReportingExecutor:
    """Another executor, which reports each result as progress at a step."""

    def __init__(self, executor: Executor, events: EventSink, step: str) -> None:
        self._executor, self._events, self._step = executor, events, step

    @property
    def workers(self) -> int:
        return self._executor.workers

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        figures: Figures = {"step": self._step, "total": len(tasks)}
        self._events(Event(PROGRESS, figures))
        for done, result in enumerate(self._executor.map(function, tasks), 1):
            self._events(Event(PROGRESS, {**figures, "done": done}))
            yield result


def available_cores() -> int:
    """The cores this process may use, which in a container is less than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ItemT = TypeVar("ItemT")
_END: Final = object()


def ahead(items: Iterable[ItemT], *, depth: int = 1) -> Iterator[ItemT]:
    """The same items in the same order, made by one thread of their own, so many in advance.

    A failure of that thread comes up where its item would have come.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix=THREAD_NAME) as pool:

        def following() -> Future[object]:
            return pool.submit(next, source, _END)

        waiting = deque(following() for _ in range(depth))
        try:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(following())
                yield item  # type: ignore[misc]
        finally:
            for future in waiting:
                future.cancel()
