"""The lock port: what any provider of a table lock can do.

A provider tries once and answers with a value; waiting and retrying is the table lock's business.
Safety does not rest on the lock (the ledger gives it): it keeps Java out, times monotonic, and
work from being wasted.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock, as far as the provider can tell."""

    owner: str
    # Since when, in milliseconds since the epoch; None where the provider does not know.
    since_ms: int | None = None
    # When it comes free by itself unless it is renewed; None where it never does.
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Acquired:
    """The lock is ours."""


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Another process has it; the remedy says how it may come free, as far as it is known."""

    holder: Holder
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Unclear:
    """Whether we have it is not known; trying again is right, acting as its owner is not."""

    cause: str


Acquiring = Acquired | HeldBy | Unclear


class LockProvider(Protocol):
    """One lock, as one owner sees it. No call waits for other owners."""

    @property
    def name(self) -> str:
        """What it is, for errors and for `show_locks`: kind and place."""
        ...

    @property
    def renew_every_seconds(self) -> float | None:
        """How often `renew` must be called while the lock is held; None when it never expires."""
        ...

    def try_acquire(self) -> Acquiring: ...

    def renew(self) -> bool:
        """Prolong the lock; False when it is not ours any more."""
        ...

    def is_held(self) -> bool:
        """Whether it is still ours, asked of the place where the lock is, not of memory."""
        ...

    def release(self) -> None:
        """Release it if it is still ours; another holder's lock is never touched."""
        ...

    def holder(self) -> Holder | None:
        """Who holds it now, for display."""
        ...
