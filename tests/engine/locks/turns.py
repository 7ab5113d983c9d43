"""Turns: several pieces of work of which one runs at a time, changing at every storage call.

Whose turn it is next is drawn from a seed, so that an order of calls that fails fails again.
"""

import threading
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar, cast

from lakewarden.engine.storage.port import Storage

T = TypeVar("T")
DEADLOCK_SECONDS = 60


class Turns:
    """Who may make the next call."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._local = threading.local()
        self._gates: list[threading.Semaphore] = []
        self._running: set[int] = set()

    def storage(self, inner: Storage) -> Storage:
        """The same storage, where every call waits for its turn."""
        return cast(Storage, _TurnedStorage(inner, self._wait))

    def run(self, works: Sequence[Callable[[], T]]) -> list[T]:
        """Do all of it; the results in the order of the works, or the first failure."""
        self._gates = [threading.Semaphore(0) for _ in works]
        self._running = set(range(len(works)))
        outcomes: list[tuple[T | None, BaseException | None]] = [(None, None)] * len(works)

        def part(number: int) -> None:
            self._local.number = number
            self._gates[number].acquire(timeout=DEADLOCK_SECONDS)
            try:
                outcomes[number] = (works[number](), None)
            except BaseException as failure:
                outcomes[number] = (None, failure)
            self._running.discard(number)
            self._open_next()

        threads = [threading.Thread(target=part, args=(n,)) for n in range(len(works))]
        for thread in threads:
            thread.start()
        self._open_next()
        for thread in threads:
            thread.join()
        for _, failure in outcomes:
            if failure is not None:
                raise failure
        return [cast(T, result) for result, _ in outcomes]

    def alone(self, work: Callable[[], T]) -> T:
        """Do something while nobody else does anything."""
        return self.run([work])[0]

    def _wait(self) -> None:
        self._open_next()
        assert self._gates[self._local.number].acquire(timeout=DEADLOCK_SECONDS)

    def _open_next(self) -> None:
        if self._running:
            self._gates[self._chance.choice(sorted(self._running))].release()


class _TurnedStorage:
    def __init__(self, inner: Storage, wait: Callable[[], None]) -> None:
        self._inner = inner
        self._wait = wait

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if not callable(found) or name == "uri":
            return found

        def made(*arguments: object) -> object:
            self._wait()
            return found(*arguments)

        return made
