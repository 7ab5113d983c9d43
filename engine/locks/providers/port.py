"""The lock port: what any provider of a table lock can do.

A provider tries once and answers with a value; waiting and retrying is the table lock's business.
Safety does not rest on the lock (the ledger gives it): it keeps Java out, times monotonic, and
work from being wasted.

Lock notes: what our lock files say, so that everybody can see whose they are and since when.
"""

from dataclasses import dataclass
from typing import Protocol

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.run.processes import ProcessMark
from lakewarden.engine.timeline.ledger.entries import format_document, parse_document


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


_KIND = "lock"
_KINDS = frozenset({_KIND})
_FOREIGN_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LockNote:
    """One acquisition of a lock; the owner is a random id that is used for this one only."""

    owner: str
    host: str
    machine: str
    pid: int
    started: str
    since_ms: int

    @classmethod
    def of(cls, owner: str, process: ProcessMark, since_ms: int) -> "LockNote":
        return cls(
            owner=owner,
            host=process.host,
            machine=process.machine,
            pid=process.pid,
            started=process.started,
            since_ms=since_ms,
        )

    @property
    def process(self) -> ProcessMark:
        return ProcessMark(self.host, self.machine, self.pid, self.started)

    @property
    def holder(self) -> Holder:
        owner = f"process {self.pid} on {self.host} (owner {self.owner})"
        return Holder(owner, self.since_ms)


class EndedOwners:
    """Owners of this process whose hold has ended, while their lock may still say otherwise.

    Giving it back has failed, or a request to take it may arrive, of which no answer was awaited,
    late. What this process knows to be over it need not wait for. That is for locks that are given
    back conditionally: another release must not be able to take a new holder's lock away. Only the
    newest are kept, since a lock expires in the end.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._owners: dict[str, None] = {}

    def add(self, owner: str) -> None:
        # Each step is one of the interpreter, so that threads do each other no harm.
        self._owners[owner] = None
        for oldest in list(self._owners)[: -self._most]:
            self._owners.pop(oldest, None)

    def discard(self, owner: str) -> None:
        self._owners.pop(owner, None)

    def has(self, owner: str) -> bool:
        return owner in self._owners


ENDED_OWNERS = EndedOwners()


def encode_note(note: LockNote) -> bytes:
    return format_document(_KIND, note)


def decode_note(content: bytes, path: str) -> LockNote | None:
    """The note in a lock file; None for a file of another engine, or of a newer one of ours."""
    try:
        return value_of(LockNote, parse_document(content, path, kinds=_KINDS).record, path, str)
    except LakewardenError:
        return None


def foreign_holder(content: bytes, modified_ms: int) -> Holder:
    """The holder of a lock file that is not ours; Java Hudi leaves it empty."""
    words = content[:_FOREIGN_LENGTH_MAX].decode("utf-8", "replace").strip()
    owner = "".join(letter if letter.isprintable() else " " for letter in words)
    return Holder(owner or "a writer without a name, such as Java Hudi", modified_ms)
