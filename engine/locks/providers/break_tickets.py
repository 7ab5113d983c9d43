"""Break tickets: the right to remove one stale lock, which only one process has at a time.

A file can be removed by its name only, not by its content. Two processes that find the same lock
stale could both remove it, and the second would remove the lock that a third took in between. So a
process creates a ticket exclusively before it removes a stale lock. The ticket's name is made from
that very lock. With the ticket it reads the lock once more.

Tickets of one lock are numbered. One whose holder has died is followed by the next number rather
than removed, for removing it would raise the same question again.
"""

import re
from collections.abc import Callable

from lakewarden.engine.locks.providers.notes import LockNote, decode_note, encode_note
from lakewarden.engine.storage.port import Entry, Storage, Won

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
