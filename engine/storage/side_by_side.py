"""Calls to a storage that do not wait for each other.

Where an answer takes a while they are made at the same time, by as many threads as the storage
takes; where it takes none, and in simulations, they are made one after the other, in their order.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

THREAD_NAME = "lakewarden-request"

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")
AnswerT = TypeVar("AnswerT")


class Concurrency(Protocol):
    """How calls are made that do not wait for each other."""

    @property
    def at_once(self) -> int:
        """How many are under way at the same time; with 1, asking ahead gains nothing."""
        ...

    def answers(self, calls: Sequence[Callable[[], AnswerT]]) -> list[AnswerT]:
        """The answers in the order of the calls; of several failures the first one is raised."""
        ...


class Asked(Protocol):
    """A storage, as far as this module has to do with it."""

    @property
    def concurrency(self) -> Concurrency: ...


@dataclass(frozen=True, slots=True)
class InTurn:
    """One after the other; the first failure ends it."""

    at_once: int = 1

    def answers(self, calls: Sequence[Callable[[], AnswerT]]) -> list[AnswerT]:
        return [call() for call in calls]


@dataclass(frozen=True, slots=True)
class AtOnce:
    """By threads; all calls have come to their end when a failure is raised.

    The last one is made by the caller's own thread.
    """

    at_once: int

    def answers(self, calls: Sequence[Callable[[], AnswerT]]) -> list[AnswerT]:
        if len(calls) < 2:
            return [call() for call in calls]
        *others, last = calls
        threads = min(self.at_once, len(calls)) - 1
        with ThreadPoolExecutor(threads, thread_name_prefix=THREAD_NAME) as pool:
            answers = [pool.submit(call) for call in others]
            own: Future[AnswerT] = Future()
            try:
                own.set_result(last())
            except Exception as failure:
                own.set_exception(failure)
        return [answer.result() for answer in (*answers, own)]


IN_TURN = InTurn()


def asks_ahead(storage: Asked) -> bool:
    """Whether to ask for what is needed later while something else is asked for."""
    return storage.concurrency.at_once > 1


def together(storage: Asked, calls: Iterable[Callable[[], AnswerT]]) -> list[AnswerT]:
    """The answers of calls that do not wait for each other, in the order of the calls."""
    return storage.concurrency.answers(tuple(calls))


def both(
    storage: Asked, first: Callable[[], FirstT], second: Callable[[], SecondT]
) -> tuple[FirstT, SecondT]:
    """The answers of two calls that do not wait for each other."""
    answers = together(storage, (first, second))
    return answers[0], answers[1]  # type: ignore[return-value]
