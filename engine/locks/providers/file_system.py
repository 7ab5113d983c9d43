"""The file system lock: the file `lock` that Java's FileSystemBasedLockProvider uses as well.

The process that creates the file has the lock; removing the file releases it. Java's file is empty,
ours holds a note. The file is created by linking, never by renaming, which would replace another
process's lock. Only the holder touches `.lock.crc`: Java's file stays for ever if its checksum file
vanishes while it is being created.

On a local disk Java first checks for the file and then opens it. So it can empty a lock that was
taken between the two, and believe it has it. Creating the file therefore proves little for long:
`is_held` looks for our note in it.

Break tickets: the right to remove one stale lock, which only one process has at a time.

A file can be removed by its name only, not by its content. Two processes that find the same lock
stale could both remove it, and the second would remove the lock that a third took in between. So a
process creates a ticket exclusively before it removes a stale lock. The ticket's name is made from
that very lock. With the ticket it reads the lock once more.

Tickets of one lock are numbered. One whose holder has died is followed by the next number rather
than removed, for removing it would raise the same question again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.providers.port import (
    Acquired,
    Acquiring,
    HeldBy,
    Holder,
    LockNote,
    Unclear,
    decode_note,
    encode_note,
    foreign_holder,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.paths import joined
from lakewarden.engine.storage.port import Entry, Lost, Storage, Unknown, Won

LEFT_AFTER_MS = 24 * 3600 * 1000
_NAME = re.compile(r"([0-9]{6})\.json")

# Whether a ticket with this note, or with none that can be read, was left behind by its holder.
IsLeft = Callable[[LockNote | None, Entry], bool]


class BreakTickets:
    """The tickets for the locks of one place."""

    def __init__(self, storage: Storage, folder: str, is_left: IsLeft) -> None:
        self._storage = storage
        self._folder = folder
        self._is_left = is_left

    def take(self, lock: str, note: LockNote) -> Entry | None:
        """The ticket for a lock; None when another process has it, or when that is not clear."""
        taken = [e for e in self._storage.list(self._of(lock)).files if _NAME.fullmatch(e.name)]
        if taken and not self._is_left(self._note(taken[-1]), taken[-1]):
            return None
        number = int(taken[-1].name.partition(".")[0]) + 1 if taken else 1
        path = f"{self._of(lock)}/{number:06d}.json"
        if self._storage.create_exclusive(path, encode_note(note)) != Won():
            return None
        return self._storage.stat(path)

    def give_back(self, lock: str, now_ms: int) -> None:
        """Remove the tickets of a lock that is gone, and those that others left long ago.

        A ticket created for the same lock after this gives no right: the lock is gone, and its name
        never comes back.
        """
        self._storage.delete_folder(self._of(lock))
        for folder in self._storage.list(self._folder).folders:
            files = self._storage.list(folder).files
            if all(now_ms - entry.modified_ms > LEFT_AFTER_MS for entry in files):
                self._storage.delete_folder(folder)

    def _of(self, lock: str) -> str:
        return f"{self._folder}/{lock}"

    def _note(self, ticket: Entry) -> LockNote | None:
        content = self._storage.read_if_present(ticket.path)
        return None if content is None else decode_note(content, ticket.path)


LOCK_NAME = "lock"
TICKETS_FOLDER = ".lakewarden/lock_breaks"
RENEWALS_PER_EXPIRY = 4


@dataclass(frozen=True, slots=True)
class Expiry:
    """After how long without renewal a lock counts as left behind; None is never."""

    ours_seconds: float
    anybodys_seconds: float | None = None

    @property
    def shortest_seconds(self) -> float:
        return min(self.ours_seconds, self.anybodys_seconds or self.ours_seconds)


@dataclass(frozen=True, slots=True)
class _Found:
    """A lock file as it was found."""

    content: bytes
    modified_ms: int
    note: LockNote | None

    @property
    def token(self) -> str:
        """A name for this very lock, good for a file; no later lock has the same."""
        return self.note.owner if self.note else f"foreign-{self.modified_ms}"

    @property
    def holder(self) -> Holder:
        return self.note.holder if self.note else foreign_holder(self.content, self.modified_ms)

    def is_same(self, other: "_Found") -> bool:
        return self.token == other.token and self.content == other.content


class FileSystemLock:
    """The lock file in one folder, as one owner sees it."""

    def __init__(self, storage: Storage, folder: str, expiry: Expiry, ports: Ports) -> None:
        self._storage = storage
        self._path = joined(folder, LOCK_NAME)
        self._expiry = expiry
        self._ports = ports
        self._owner = ports.ids.fresh()
        self._content: bytes | None = None
        self._has_tried = False
        tickets = joined(folder, TICKETS_FOLDER)
        self._tickets = BreakTickets(storage, tickets, self._is_left)

    @property
    def name(self) -> str:
        return f"file system lock {self._storage.uri(self._path)}"

    @property
    def renew_every_seconds(self) -> float:
        return self._expiry.shortest_seconds / RENEWALS_PER_EXPIRY

    def try_acquire(self) -> Acquiring:
        # The lock is free more often than not, so that the first try is to take it.
        if not self._has_tried:
            self._has_tried = True
            answer = self._create()
            if not isinstance(answer, HeldBy):
                return answer
        found = self._read()
        if found is not None and self._is_mine(found):
            return self._acquired(found.content)
        if found is not None and not (self._is_stale(found) and self._broken(found)):
            return HeldBy(found.holder, self._remedy(found))
        return self._create()

    def renew(self) -> bool:
        # Should the lock change hands between the two calls, its new holder gains some time by it.
        return self.is_held() and self._storage.touch(self._path)

    def is_held(self) -> bool:
        return (
            self._content is not None and self._storage.read_if_present(self._path) == self._content
        )

    def release(self) -> None:
        # Between the two calls the lock can only be lost if this process slept through the whole
        # expiry there; a holder that loses its lock that way learns it from `is_held`.
        if self.is_held():
            self._storage.delete(self._path)
        self._content = None

    def holder(self) -> Holder | None:
        found = self._read()
        return replace(found.holder, expires_ms=self._expires_ms(found)) if found else None

    def _expires_ms(self, found: _Found) -> int | None:
        """By the same rules as in `_is_stale`."""
        anybodys, ours = self._expiry.anybodys_seconds, self._expiry.ours_seconds
        limits = [ours] if found.note is not None else []
        limits += [anybodys] if anybodys is not None else []
        return found.modified_ms + round(min(limits) * 1000) if limits else None

    def _create(self) -> Acquiring:
        content = encode_note(self._my_note())
        match self._storage.create_exclusive(self._path, content):
            case Won():
                return self._acquired(content)
            case Lost(theirs):
                now_ms = self._ports.clock.now_ms()
                found = _Found(theirs, now_ms, decode_note(theirs, self._path))
                return HeldBy(found.holder, self._remedy(found))
            case Unknown(cause):
                # Should it be ours, the next look will recognise it and `release` remove it.
                self._content = content
                return Unclear(cause)

    def _acquired(self, content: bytes) -> Acquired:
        self._content = content
        return Acquired()

    def _my_note(self) -> LockNote:
        return LockNote.of(self._owner, self._ports.processes.mine(), self._ports.clock.now_ms())

    def _is_mine(self, found: _Found) -> bool:
        return found.note is not None and found.note.owner == self._owner

    def _read(self) -> _Found | None:
        # The time is asked for after the content: should the lock change hands in between, an old
        # lock looks young, and never the other way round.
        content = self._storage.read_if_present(self._path)
        entry = self._storage.stat(self._path) if content is not None else None
        if content is None or entry is None:
            return None
        return _Found(content, entry.modified_ms, decode_note(content, self._path))

    def _is_stale(self, found: _Found, now_ms: int | None = None) -> bool:
        now_ms = self._ports.clock.now_ms() if now_ms is None else now_ms
        age_seconds = (now_ms - found.modified_ms) / 1000
        anybodys = self._expiry.anybodys_seconds
        if anybodys is not None and age_seconds > anybodys:
            return True
        return found.note is not None and (
            self._ports.processes.is_gone(found.note.process)
            or age_seconds > self._expiry.ours_seconds
        )

    def _is_left(self, note: LockNote | None, ticket: Entry) -> bool:
        if note is not None and self._ports.processes.is_gone(note.process):
            return True
        age_ms = self._ports.clock.now_ms() - ticket.modified_ms
        return age_ms > self._expiry.ours_seconds * 1000

    def _broken(self, found: _Found) -> bool:
        """Step `lock.break`: remove a stale lock; False if others do, or it is stale no more.

        The ticket keeps away everybody else who found this lock stale. Looking again under the
        ticket guards against having been late: the lock may have been broken, released or renewed
        since, and another may be there. The ticket's own time is what the file system thinks the
        time is, so a clock of this machine that runs ahead breaks nothing. What is left is a holder
        that is alive after all, releases its lock right after our second look, and a third writer
        that takes it before our removal: that one learns from `is_held` that its lock is gone.
        """
        ticket = self._tickets.take(found.token, self._my_note())
        if ticket is None:
            return False
        again = self._read()
        is_same = again is not None and again.is_same(found)
        is_due = again is not None and is_same and self._is_stale(again, ticket.modified_ms)
        if is_due:
            self._storage.delete(self._path)
        self._tickets.give_back(found.token, ticket.modified_ms)
        if is_due:
            place = {"lock": self.name, "owner": found.holder.owner}
            self._ports.events(Event("stale_lock_broken", place))
        return is_due

    def _remedy(self, found: _Found) -> str:
        if found.note is not None:
            return (
                "It is released when its process ends, or after "
                f"{self._expiry.ours_seconds:g} s without a heartbeat."
            )
        if self._expiry.anybodys_seconds is not None:
            return f"It expires {self._expiry.anybodys_seconds:g} s after it was taken."
        return (
            "It never expires. If no writer is alive, delete "
            f"{self._storage.uri(self._path)}, or set hoodie.write.lock.filesystem.expire."
        )
