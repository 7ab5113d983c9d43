"""Task contexts: where the tasks of a service run, and the fence that stops a superseded one.

A task context travels as the location of its storage and the claim of its attempt. The worker that
unpacks it opens the storage anew, and asks the ledger whether the attempt may go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from lakewarden.engine.kernel.clock import Clock, SystemClock
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.timeline.ledger.entries import Claim
from lakewarden.engine.transaction.attempts.attempt import LOOK_EVERY_SECONDS, Attempt, assert_last

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


class FenceCheck(Protocol):
    """Raises unless the attempt may go on."""

    def assert_mine(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class FencedTaskContext:
    """The storage as seen from here, and the attempt that the work is for."""

    storage: Storage
    claim: Claim
    check: FenceCheck
    # A task that is tried again, as Spark does, names its files differently.
    task_attempt: int = 0

    @classmethod
    def here(cls, storage: Storage, attempt: Attempt) -> "FencedTaskContext":
        return cls(storage, attempt.claim, attempt)

    def assert_mine(self) -> None:
        """Raise unless the attempt may go on; cheap enough to be asked for every batch."""
        self.check.assert_mine()

    def keep(self, path: str) -> None:
        """Raise unless the attempt may go on; the file just made is then deleted.

        A fenced-off worker may still be running after its files were cleaned up, so it deletes its
        own output.
        """
        try:
            assert_last(self.storage, self.claim)
        except Conflict:
            self.storage.delete(path)
            raise

    def __reduce__(self) -> tuple[Callable[..., "FencedTaskContext"], tuple[Location, Claim]]:
        return _remote_context, (self.storage.location, self.claim)


@dataclass(slots=True, eq=False)
class _Ledger:
    """Asks the ledger itself, once a second at most."""

    storage: Storage
    claim: Claim
    clock: Clock = field(default_factory=SystemClock)
    looked_at: float = float("-inf")

    def assert_mine(self) -> None:
        now = self.clock.elapsed_seconds()
        if now - self.looked_at >= LOOK_EVERY_SECONDS:
            assert_last(self.storage, self.claim)
            self.looked_at = now


def _remote_context(location: Location, claim: Claim) -> FencedTaskContext:
    storage = open_storage(location)
    return FencedTaskContext(storage, claim, _Ledger(storage, claim))


@dataclass(frozen=True, slots=True, eq=False)
class FencedTask(Generic[TaskT, ResultT]):
    """Work at a place: what executors are given, whether their workers are near or far."""

    place: FencedTaskContext
    work: Callable[[FencedTaskContext, TaskT], ResultT]

    def __call__(self, task: TaskT) -> ResultT:
        self.place.assert_mine()
        return self.work(self.place, task)

    def assert_mine(self) -> None:
        """Raise unless the attempt may go on; a driver asks this while it waits for workers."""
        self.place.assert_mine()

    def tried(self, task_attempt: int) -> "FencedTask[TaskT, ResultT]":
        """The same work where it is tried for so many a time."""
        return replace(self, place=replace(self.place, task_attempt=task_attempt))
