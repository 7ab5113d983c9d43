"""The ledger of a stream: numbered entries that say which of its batches are in the table.

As in the ledger of an instant, entry k+1 is created exclusively, by a process that has read entry k
as the last one. An entry names the instant that its batch is written by. The next one is only
appended when that instant has completed, or never can: so a batch has one instant at most that can
commit. Every entry tells all that is known of the stream, and older ones are removed.
"""

import re
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.kernel.errors import CorruptTable, Unavailable, Unsettled
from lakewarden.engine.storage.port import Lost, Storage, Unknown, Won
from lakewarden.engine.timeline.ledger.entries import (
    PRIVATE_FOLDER,
    format_document,
    is_torn,
    parse_document,
)

STREAMS_FOLDER = f"{PRIVATE_FOLDER}/streams"
# So many of the newest batches an entry tells of: a batch that comes again is among these.
RECENT_MAX = 32
# An entry that was cut short is preceded by a whole one.
_KEPT_MAX = 3

_ENTRY_NAME = re.compile(r"([0-9]{9})\.json")
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_KIND = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch: what its rows were, and the instant that wrote them, "" if there were none."""

    number: int
    instant: str = ""
    rows: int = 0
    # Of the keys in any order.
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEntry:
    """What is known of a stream once its newest batch has started."""

    stream: str
    # Of the query that the batches come from, where it is known.
    query: str = ""
    checkpoint: str = ""
    owner: str = ""
    by: str = ""
    at_ms: int = 0
    # The batch that the stream began with.
    first: int = 0
    # The newest ones that were committed when this was written, oldest first.
    done: tuple[Batch, ...] = ()
    # Whether it was committed its instant tells.
    started: Batch | None = None
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class StreamLedger:
    """The last entry of a stream as it was read, and its number; 0 before the first one."""

    stream: str
    number: int = 0
    entry: StreamEntry | None = None

    @property
    def known(self) -> StreamEntry | None:
        """What is known of the stream; nothing after it was forgotten."""
        return None if self.entry is None or self.entry.is_forgotten else self.entry


def read_stream(storage: Storage, stream: str) -> StreamLedger:
    """The ledger of a stream as it is now; without an entry where the stream is new."""
    return _read(storage, stream_folder(stream), stream)


def read_streams(storage: Storage) -> tuple[StreamLedger, ...]:
    """The streams of a table that were not forgotten, by their names; a few calls for each."""
    folders = storage.list(STREAMS_FOLDER).folders
    found = [_read(storage, folder, folder.rpartition("/")[2]) for folder in folders]
    return tuple(sorted((one for one in found if one.known), key=lambda one: one.stream))


def append_to_stream(storage: Storage, ledger: StreamLedger, entry: StreamEntry) -> StreamLedger:
    """The ledger with one more entry, or that of another process which was faster.

    Who was paused may create an entry in a place that was emptied since: the newest number counts.
    """
    folder, number = stream_folder(ledger.stream), ledger.number + 1
    try:
        answer = storage.create_exclusive(_path(folder, number), format_document(_KIND, entry))
    except Unavailable as error:
        # What was denied, or found no room, has surely had no effect; else it may have arrived.
        if error.code != "storage_unavailable":
            raise
        answer = Unknown(str(error))
    match answer:
        case Won():
            now = _numbers(storage, folder)
            if now and now[-1] > number:
                return _read(storage, folder, ledger.stream)
            _remove(storage, folder, [old for old in now if old <= number - _KEPT_MAX])
            return StreamLedger(ledger.stream, number, entry)
        case Lost():
            return _read(storage, folder, ledger.stream)
        case Unknown(cause):
            return _read_back(storage, ledger, entry, cause)


def stream_folder(stream: str) -> str:
    """Where the entries of a stream lie, whatever characters its name has."""
    name = "".join(
        one if _PLAIN.fullmatch(one) else "".join(f"={octet:02x}" for octet in one.encode())
        for one in stream
    )
    return f"{STREAMS_FOLDER}/{name}"


def _read(storage: Storage, folder: str, stream: str) -> StreamLedger:
    while True:
        numbers = _numbers(storage, folder)
        if not numbers:
            return StreamLedger(stream)
        for number in reversed(numbers):
            path = _path(folder, number)
            content = storage.read_if_present(path)
            if content is None:
                # It was removed since the listing, behind newer ones.
                break
            if not is_torn(content):
                record = parse_document(content, path, kinds=frozenset({_KIND})).record
                entry = value_of(StreamEntry, record, path, str)
                return StreamLedger(entry.stream, numbers[-1], entry)
        else:
            if numbers[0] == 1:
                # The very first one was cut short: its maker has started nothing.
                return StreamLedger(stream, numbers[-1])
            raise _torn(folder)


def _read_back(
    storage: Storage, ledger: StreamLedger, entry: StreamEntry, cause: str
) -> StreamLedger:
    try:
        now = read_stream(storage, ledger.stream)
    except Unavailable as error:
        raise _in_doubt(ledger, cause) from error
    if now.number <= ledger.number:
        raise _in_doubt(ledger, cause)
    return now


def _numbers(storage: Storage, folder: str) -> list[int]:
    names = (entry.name for entry in storage.list(folder).files)
    return sorted(int(match[1]) for match in map(_ENTRY_NAME.fullmatch, names) if match)


def _path(folder: str, number: int) -> str:
    return f"{folder}/{number:09d}.json"


def _remove(storage: Storage, folder: str, numbers: list[int]) -> None:
    for number in numbers:
        storage.delete(_path(folder, number))


def _in_doubt(ledger: StreamLedger, cause: str) -> Unsettled:
    return Unsettled(
        "stream_unsettled",
        what=f"It is not known whether the ledger of the stream {ledger.stream!r} has a new entry.",
        why=cause,
        now="Nothing was committed. Write the batch again.",
        stream=ledger.stream,
    )


def _torn(folder: str) -> CorruptTable:
    return CorruptTable(
        "broken_stream",
        what=f"{folder} has no whole entry.",
        why="Another program has removed or changed entries of the stream's ledger.",
        now="Find the newest batch in the table's history, then forget the stream.",
        path=folder,
    )
