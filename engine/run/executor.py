"""The executor port: run tasks, return their results in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Protocol, TypeVar

from lakewarden.engine.kernel.events import PROGRESS, Event, EventSink, Figures

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
