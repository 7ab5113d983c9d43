"""The ledger of an instant: numbered entries that name its attempts and say how it ended.

Entries are created exclusively, and only behind a claim that was read as the last entry, so claims,
the commit and the cancel compete for one next number: one wins, the others see who did. Two laws
follow, and the functions here assert them:

1. No process deletes a file of an instant unless its ledger ends in `cancelled` or `withdrawn`, or
   a newer claim has superseded the attempt that made the file.
2. No process publishes a completed instant unless its ledger ends in `committed`.

A committer puts a fence behind the claims of all others before it decides about conflicts. A
committer that has decided without having seen the fence finds the next number taken, and looks
again: safety does not rest on the lock.

What was committed stays so, except that a rollback of the completed instant appends `withdrawn`
first: from then on no process rolls it forward, however far the rollback has come.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable, Defect
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import (
    PRIVATE_FOLDER,
    Cancelled,
    Claim,
    Committed,
    Entry,
    Fenced,
    Torn,
    Withdrawn,
    decode_entry,
    encode_entry,
    is_torn,
)

LEDGER_FOLDER = f"{PRIVATE_FOLDER}/ledger"

_ENTRY_NAME = re.compile(r"([0-9]{6})\.json")


@dataclass(frozen=True, slots=True)
class Ledger:
    """The entries of one instant as they were read; the first has number 1."""

    instant: str
    entries: tuple[Entry | Torn, ...] = ()

    @property
    def last(self) -> Entry | Torn | None:
        """The last entry; a fence changes nothing but the number of the next one."""
        deciding = (entry for entry in reversed(self.entries) if not isinstance(entry, Fenced))
        return next(deciding, None)

    @property
    def last_whole(self) -> Entry | None:
        """The last entry that says something."""
        whole = (entry for entry in reversed(self.entries) if not isinstance(entry, Fenced | Torn))
        return next(whole, None)

    @property
    def last_claim(self) -> Claim | None:
        """The newest attempt, whatever came of it."""
        claims = (entry for entry in reversed(self.entries) if isinstance(entry, Claim))
        return next(claims, None)

    @property
    def next_number(self) -> int:
        return len(self.entries) + 1

    def supersedes(self, attempt: int) -> bool:
        """Whether a newer claim than that attempt's is there, however the newer one has ended."""
        claim = self.last_claim
        return claim is not None and claim.attempt > attempt

    @property
    def ends_in(self) -> LedgerEnd:
        match self.last_whole:
            case None:
                return LedgerEnd.NONE
            case Claim() | Fenced():
                return LedgerEnd.CLAIM
            case Committed():
                return LedgerEnd.COMMITTED
            case Cancelled() | Withdrawn():
                return LedgerEnd.CANCELLED


@dataclass(frozen=True, slots=True)
class Appended:
    """The entry is in; this is the ledger with it."""

    ledger: Ledger


@dataclass(frozen=True, slots=True)
class LostTo:
    """Another process's entry has that number."""

    entry: Entry | Torn


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The entry may or may not be in: read the ledger again before acting."""

    cause: str


Appending = Appended | LostTo | InDoubt


def entry_path(instant: str, number: int) -> str:
    return f"{LEDGER_FOLDER}/{instant}/{number:06d}.json"


def read_ledger(storage: Storage, instant: str) -> Ledger:
    """The ledger of an instant as it is now; one without entries for an instant that has none."""
    while True:
        found = {
            number: storage.read_if_present(entry_path(instant, number))
            for number in sorted(_numbers(storage, instant))
        }
        contents = {number: content for number, content in found.items() if content is not None}
        # What is missing was removed since the listing; a ledger under removal gets no new entry.
        if len(contents) == len(found):
            return _ledger_of(instant, contents)


def read_on(storage: Storage, known: Ledger) -> Ledger:
    """A ledger as it is now, of which some entries were read before.

    No entry changes, so as long as there are as many, all is as it was.
    """
    is_as_known = _numbers(storage, known.instant) == set(range(1, known.next_number))
    return known if is_as_known else read_ledger(storage, known.instant)


def _numbers(storage: Storage, instant: str) -> set[int]:
    """The numbers of the entries that are there."""
    names = (entry.name for entry in storage.list(f"{LEDGER_FOLDER}/{instant}").files)
    return {int(match[1]) for match in map(_ENTRY_NAME.fullmatch, names) if match}


def _ledger_of(instant: str, contents: Mapping[int, bytes]) -> Ledger:
    paths = {number: entry_path(instant, number) for number in contents}
    entries = {
        number: _decoded(content, paths[number], number) for number, content in contents.items()
    }
    end = entries[max(entries)] if entries else None
    if isinstance(end, Cancelled | Withdrawn) and min(entries) > 1 and end.instant == instant:
        # A clean is about to forget it, or has died on the way; it removes the end last.
        return Ledger(instant, (end,))
    ledger = Ledger(instant)
    for number, entry in entries.items():
        path = paths[number]
        fault = _fault(ledger, entry, number)
        if fault is not None:
            raise _broken(path, fault)
        ledger = Ledger(instant, (*ledger.entries, entry))
    return ledger


def instants_with_ledger(storage: Storage) -> tuple[str, ...]:
    """The instants that have a ledger, oldest first; costs one listing."""
    folders = storage.list(LEDGER_FOLDER).folders
    return tuple(folder.rpartition("/")[2] for folder in folders)


def append(storage: Storage, ledger: Ledger, entry: Entry) -> Appending:
    """Add an entry behind the last one that was read."""
    fault = _fault(ledger, entry, ledger.next_number)
    if fault is not None:
        raise Defect(
            "ledger_misuse",
            what=f"An entry does not fit behind the ledger of {ledger.instant}.",
            why=fault,
            instant=ledger.instant,
        )
    path = entry_path(ledger.instant, ledger.next_number)
    match storage.create_exclusive(path, encode_entry(entry)):
        case Won():
            return Appended(Ledger(ledger.instant, (*ledger.entries, entry)))
        case Lost(content):
            return LostTo(_decoded(content, path, ledger.next_number))
        case Unknown(cause):
            return InDoubt(cause)


def remove_ledger(storage: Storage, ledger: Ledger) -> int:
    """Remove the ledger of an ended instant; the number of files removed.

    The last entry goes first: what a crash leaves is a ledger, not one with a hole.
    """
    numbers = range(len(ledger.entries), 0, -1)
    removed = sum(storage.delete(entry_path(ledger.instant, number)) for number in numbers)
    if removed:
        storage.delete_folder(f"{LEDGER_FOLDER}/{ledger.instant}")
    return removed


def assert_may_delete(ledger: Ledger, attempt: int) -> None:
    """Law 1, for the files that an attempt made; 0 stands for whatever attempt made them."""
    is_superseded = attempt > 0 and ledger.supersedes(attempt)
    if not (ledger.ends_in is LedgerEnd.CANCELLED or is_superseded):
        raise _law_broken(1, ledger, f"Files of attempt {attempt} were about to be deleted.")


def assert_may_publish(ledger: Ledger) -> Committed:
    """Law 2; the answer is the entry that allows it."""
    last = ledger.last_whole
    if not isinstance(last, Committed):
        raise _law_broken(2, ledger, "A completed instant was about to be published.")
    return last


def _decoded(payload: bytes, path: str, number: int) -> Entry | Torn:
    return Torn(number) if is_torn(payload) else decode_entry(payload, path)


def _fault(ledger: Ledger, entry: Entry | Torn, number: int) -> str | None:
    """What is wrong with an entry of that number behind a ledger, if anything."""
    if number != ledger.next_number:
        return f"Entry {ledger.next_number} is missing."
    if ledger.ends_in is LedgerEnd.CANCELLED:
        return "An entry follows the one that ends the ledger."
    if isinstance(entry, Torn):
        return None
    if isinstance(ledger.last_whole, Committed) and not isinstance(entry, Withdrawn):
        return "An entry follows the one that ends the ledger."
    return _misfit(ledger, entry, number)


def _misfit(ledger: Ledger, entry: Entry, number: int) -> str | None:
    """What does not fit between an entry and the ones before it."""
    last = ledger.last
    if isinstance(entry, Fenced) and ledger.ends_in is not LedgerEnd.CLAIM:
        return "The ledger has no claim to fence."
    if entry.instant != ledger.instant:
        return f"The entry is about instant {entry.instant}."
    before = ledger.last_whole
    if before is not None and entry.action is not before.action:
        return f"The entry is about a {entry.action.value}, the one before it is not."
    if isinstance(entry, Claim) and entry.attempt != number:
        return f"Claim {number} is for attempt {entry.attempt}."
    if isinstance(entry, Committed) and not (
        isinstance(last, Claim) and entry.attempt == last.attempt
    ):
        return f"Attempt {entry.attempt} committed without holding the last claim."
    return None


def _broken(path: str, fault: str) -> CorruptTable:
    return CorruptTable(
        "broken_ledger",
        what=f"The ledger is broken at {path}.",
        why=fault,
        now=(
            "Find out what removed or changed its entries. Until then Lakewarden leaves "
            "this instant alone."
        ),
        path=path,
    )


def _law_broken(number: int, ledger: Ledger, act: str) -> Defect:
    return Defect(
        "law_broken",
        what=act,
        why=f"The ledger of {ledger.instant} ends in {ledger.ends_in.name}, which forbids it.",
        instant=ledger.instant,
        law=number,
    )
