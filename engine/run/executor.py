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
from itertools import islice
from typing import Final, Protocol, TypeVar

from lakewarden.engine.kernel.clock import Clock, SystemClock
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
    """Work of which a process does one piece at a time; who comes second lets it be.

    What went wrong with it is kept until it is taken.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: list[str] = []

    def begins(self) -> bool:
        return self._lock.acquire(blocking=False)

    def ends(self, failures: Iterable[str] = ()) -> None:
        self._failures.extend(failures)
        self._lock.release()

    def taken_failures(self) -> tuple[str, ...]:
        """What went wrong since the last call."""
        taken = tuple(self._failures)
        del self._failures[: len(taken)]
        return taken


class ThreadBackground:
    """A thread for each, independent of the storage calls of the work it stands for.

    What is stopped before it is due the first time, as most of it is, has cost no thread.
    """

    def repeat(self, work: Callable[[], None], *, every_seconds: float) -> Repetition:
        repeated = _Repeated(work, every_seconds)
        _ALARM.wake(repeated, every_seconds)
        return repeated

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


class _Repeated:
    """Work that gets a thread of its own when it is due for the first time."""

    def __init__(self, work: Callable[[], None], every_seconds: float) -> None:
        self._work = work
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def begin(self) -> None:
        """Work now, and from now on; no more once it is stopped."""
        with self._lock:
            if not self.is_stopped:
                self._thread = threading.Thread(
                    target=self._run, name="lakewarden-beat", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while not self.is_stopped:
            self._work()
            self._stopped.wait(self._every_seconds)

    def stop(self) -> None:
        """After this the work does not run any more; a run under way is waited for."""
        with self._lock:
            self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


class _Alarm:
    """One thread that waits for all that is due later; it ends when there is nothing left."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._changed = threading.Condition()
        self._due: list[tuple[float, _Repeated]] = []
        self._thread: threading.Thread | None = None

    def wake(self, repeated: _Repeated, in_seconds: float) -> None:
        """Have something begin after a while."""
        due = self._clock.elapsed_seconds() + in_seconds
        with self._changed:
            is_first = all(due < other for other, _ in self._due)
            self._due = [one for one in self._due if not one[1].is_stopped]
            self._due.append((due, repeated))
            # A process that was forked off has no thread of the one before it.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="lakewarden-alarm", daemon=True
                )
                self._thread.start()
            elif is_first:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                now = self._clock.elapsed_seconds()
                waiting = [one for one in self._due if not one[1].is_stopped]
                begun = [repeated for due, repeated in waiting if due <= now]
                self._due = [one for one in waiting if one[0] > now]
                if not waiting:
                    self._thread = None
                    return
                if not begun:
                    self._changed.wait(min(due for due, _ in waiting) - now)
            for repeated in begun:
                repeated.begin()


_ALARM = _Alarm()


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

    def parts(
        self, function: Callable[[TaskT], Iterable[ResultT]], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        """What tasks give part by part, each as soon as it is there; a few parts wait at most.

        The parts of a task come in their order, with those of other tasks between them.
        """
        if self._workers == 1 or len(tasks) <= 1:
            for task in tasks:
                yield from function(task)
            return
        left = iter(tasks)
        with ThreadPoolExecutor(self._workers, thread_name_prefix=THREAD_NAME) as pool:
            waiting: deque[tuple[Iterator[ResultT], Future[ResultT | None]]] = deque()

            def go_on(parts: Iterator[ResultT]) -> None:
                waiting.append((parts, pool.submit(next, parts, None)))

            try:
                # One more than workers, so that none rests while a part is being taken.
                for task in islice(left, self._workers + 1):
                    go_on(iter(function(task)))
                while waiting:
                    parts, future = waiting.popleft()
                    part = future.result()
                    if part is not None:
                        go_on(parts)
                        yield part
                        continue
                    for task in islice(left, 1):
                        go_on(iter(function(task)))
            finally:
                for _, future in waiting:
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
