"""The table lock: waits for a provider's lock, keeps it alive while it is needed, gives it back.

Steps of `lock`: take, renew, check, give-back, break. The last one is of providers whose lock stays
when its holder dies.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.errors import Conflict, LakewardenError, Unavailable
from lakewarden.engine.kernel.events import Event, Figures
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.locks.providers.port import (
    Acquired,
    Acquiring,
    HeldBy,
    Holder,
    LockProvider,
    Unclear,
)
from lakewarden.engine.run.background import try_again
from lakewarden.engine.run.interrupts import always_wanted
from lakewarden.engine.run.ports import Ports

# A lock is usually held for milliseconds, and sometimes for minutes. Pausing for a share of the
# time waited so far is never late by more than that share, and looks seldom when it takes long.
PAUSE_SHARE = 0.1
PAUSE_MIN_SECONDS = 0.002
# Shorter waits are part of the day; the next word comes after twice the time.
SAYS_AFTER_SECONDS = 2.0
# Longer than any lock is valid that is not renewed.
RELEASE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a lock, and how long to look away meanwhile."""

    wait_seconds: float
    pause_max_seconds: float = 1.0


class HeldLock:
    """A lock that was taken; whether it is still ours must be asked before acting on it."""

    def __init__(self, provider: LockProvider, clock: Clock) -> None:
        self._provider = provider
        self._clock = clock
        self._since_ms = clock.now_ms()
        self._lost_ms: int | None = None

    @property
    def name(self) -> str:
        return self._provider.name

    def assert_held(self) -> None:
        """Step `lock.check`: raise `lock_lost` unless the lock is ours, asked where it is."""
        if self._lost_ms is None and not self._provider.is_held():
            self._lost_ms = self._clock.now_ms()
        if self._lost_ms is not None:
            raise self._lost(self._lost_ms)

    def renew(self) -> None:
        """Step `lock.renew`: prolong it, or remember that it is lost; out of reach, try again."""
        with suppress(LakewardenError):
            if self._lost_ms is None and not self._provider.renew():
                self._lost_ms = self._clock.now_ms()

    def _lost(self, lost_ms: int) -> Conflict:
        held_seconds = (lost_ms - self._since_ms) / 1000
        return Conflict(
            "lock_lost",
            what=f"This process has lost the {self.name}.",
            why=(
                f"This process took it at {self._since_ms} ms and lost it within "
                f"{held_seconds:.1f} s."
            ),
            now="Nothing was changed. Try again.",
            lock=self.name,
            since_ms=self._since_ms,
            lost_ms=lost_ms,
        )


class TableLock:
    """The lock of one table. Every `hold` is an owner of its own, in whatever thread."""

    def __init__(
        self, open_provider: Callable[[], LockProvider], patience: Patience, ports: Ports
    ) -> None:
        self._open_provider = open_provider
        self._patience = patience
        self._ports = ports

    @property
    def name(self) -> str:
        """Kind and place of the lock."""
        return self._open_provider().name

    def holder(self) -> Holder | None:
        """Who holds the lock now, for display."""
        return self._open_provider().holder()

    @contextmanager
    def hold(self, *, while_wanted: bool = False) -> Iterator[HeldLock]:
        """Hold the lock; `lock_held` when other processes keep it for too long.

        `while_wanted` is for a caller that has done nothing yet: it stops waiting once cancelled.
        """
        provider = self._open_provider()
        try:
            self._acquire(provider, self._ports.check_wanted if while_wanted else always_wanted)
            held = HeldLock(provider, self._ports.clock)
            with self._renewing(held, provider.renew_every_seconds):
                yield held
        finally:
            # Also when it was never clear whether we got it.
            self._release(provider)

    def _acquire(self, provider: LockProvider, check_wanted: Callable[[], None]) -> None:
        """Step `lock.take`."""
        clock, began = self._ports.clock, self._ports.clock.elapsed_seconds()
        says_next = SAYS_AFTER_SECONDS
        while not isinstance(answer := _tried(provider), Acquired):
            check_wanted()
            waited = clock.elapsed_seconds() - began
            left = self._patience.wait_seconds - waited
            if left <= 0:
                raise _gave_up(provider, answer, waited, clock.now_ms())
            if waited >= says_next:
                self._ports.events(_waited(provider, answer, waited, left, clock.now_ms()))
                says_next = waited * 2
            clock.sleep(min(left, self._pause(waited)))

    def _pause(self, waited: float) -> float:
        longest = max(PAUSE_MIN_SECONDS, self._patience.pause_max_seconds)
        pause = min(max(PAUSE_MIN_SECONDS, waited * PAUSE_SHARE), longest)
        return pause * (0.5 + _chance(self._ports.ids))

    @contextmanager
    def _renewing(self, held: HeldLock, every_seconds: float | None) -> Iterator[None]:
        if every_seconds is None:
            yield
            return
        repetition = self._ports.background.repeat(held.renew, every_seconds=every_seconds)
        try:
            yield
        finally:
            repetition.stop()

    def _release(self, provider: LockProvider) -> None:
        """Step `lock.give-back`."""
        # What was done under the lock is done, whether or not giving it back works: it expires.
        try:
            provider.release()
        except LakewardenError as error:
            figures = {"lock": provider.name, "reason": str(error)}
            self._ports.events(Event("lock_not_released", figures))
            ports = self._ports
            try_again(ports.background, ports.clock, provider.release, most_seconds=RELEASE_SECONDS)


def _tried(provider: LockProvider) -> Acquiring:
    try:
        return provider.try_acquire()
    except Unavailable as error:
        # What was denied, or has no room, will be so next time as well.
        if error.code != "storage_unavailable":
            raise
        return Unclear(str(error))


def _waited(
    provider: LockProvider, answer: HeldBy | Unclear, waited: float, left: float, now_ms: int
) -> Event:
    """Why this process stands still."""
    match answer:
        case HeldBy(holder):
            reason = f"{holder.owner} has held it{_age(holder, now_ms)}"
        case Unclear(cause):
            reason = cause.rstrip(".")
    figures: Figures = {"lock": provider.name, "waited": waited, "left": left, "reason": reason}
    return Event("lock_waited", figures)


def _chance(ids: Ids) -> float:
    """A number from 0 to 1, so that those who wait do not all look at the same moments."""
    return int(ids.fresh()[:8], 16) / 2**32


def _gave_up(
    provider: LockProvider, answer: HeldBy | Unclear, waited: float, now_ms: int
) -> LakewardenError:
    longer = "To wait longer, raise hoodie.write.lock.wait_time_ms."
    match answer:
        case Unclear(cause):
            return Unavailable(
                "lock_unavailable",
                what=f"Lakewarden could not take the {provider.name} within {waited:.1f} s.",
                why=cause,
                now=f"Check that the lock's storage can be reached, then try again. {longer}",
                lock=provider.name,
            )
        case HeldBy(holder, remedy):
            return Conflict(
                "lock_held",
                what=f"The {provider.name} is held by {holder.owner}{_age(holder, now_ms)}.",
                why=f"It was not released within {waited:.1f} s.",
                now=f"{remedy} {longer}".strip(),
                lock=provider.name,
                owner=holder.owner,
                since_ms=holder.since_ms,
            )


def _age(holder: Holder, now_ms: int) -> str:
    return "" if holder.since_ms is None else f" for {(now_ms - holder.since_ms) / 1000:.1f} s"
