"""Locks of a simulation: one that nobody loses, one that is lost by whoever pauses, and none."""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.locks.providers.port import Acquired, Acquiring, HeldBy, Holder
from tests.simulation.scheduler import Actor, Scheduler

BROKEN_AFTER_MS = 60_000
RENEWED_EVERY_SECONDS = 15.0


class LockKind(StrEnum):
    """What the table lock promises."""

    KEPT = "kept"
    """It excludes all others until it is given back, or some time after its owner has died."""
    LEASED = "leased"
    """It is lost when it is not renewed, and a process that pauses does not renew it."""
    NONE = "none"
    """Everybody has it at any time."""


@dataclass
class Place:
    """Where the lock of a table is."""

    kind: LockKind
    owner: "SimulatedLock | None" = None
    seen_ms: int = 0


class SimulatedLock:
    """The lock of the table, as one owner sees it."""

    name = "simulated lock"

    def __init__(self, place: Place, scheduler: Scheduler, actor: Actor) -> None:
        self._place = place
        self._scheduler = scheduler
        self._actor = actor

    @property
    def renew_every_seconds(self) -> float | None:
        return RENEWED_EVERY_SECONDS if self._place.kind is LockKind.LEASED else None

    def try_acquire(self) -> Acquiring:
        place, now = self._place, self._scheduler.clock.now_ms()
        if place.kind is not LockKind.NONE and place.owner is not None and not self._is_left():
            return HeldBy(Holder(place.owner._actor.name, place.seen_ms))
        place.owner, place.seen_ms = self, now
        self._scheduler.note(self._actor, "lock", place.kind)
        return Acquired()

    def renew(self) -> bool:
        if self.is_held():
            self._place.seen_ms = self._scheduler.clock.now_ms()
        return self.is_held()

    def is_held(self) -> bool:
        return self._place.kind is LockKind.NONE or self._place.owner is self

    def release(self) -> None:
        if not self._actor.is_dead and self._place.owner is self:
            self._place.owner = None
            self._scheduler.note(self._actor, "unlock", self._place.kind)

    def holder(self) -> Holder | None:
        owner = self._place.owner
        return None if owner is None else Holder(owner._actor.name, self._place.seen_ms)

    def _is_left(self) -> bool:
        place, now = self._place, self._scheduler.clock.now_ms()
        assert place.owner is not None
        owner = place.owner._actor
        if place.kind is LockKind.LEASED:
            return now - place.seen_ms > BROKEN_AFTER_MS
        return owner.is_dead and now - owner.died_ms > BROKEN_AFTER_MS
