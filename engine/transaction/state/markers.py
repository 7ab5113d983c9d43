"""Markers: a note for every data file, left before the file itself, so that a crash can be undone.

Ours are direct: one empty file for each data file. Java's may also be lines in a few files of its
timeline server, which only Java writes. An instant may have both after a take-over.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.border import check_data_file, check_partition
from lakewarden.engine.storage.checksums import is_checksum
from lakewarden.engine.storage.port import Entry, Storage

TEMP_FOLDER = ".hoodie/.temp"

_INFIX = ".marker."
_SERVER_TYPE = "MARKERS.type"
_SERVER_PREFIX = "MARKERS"


class MarkerKind(StrEnum):
    """What kind of file is announced; logs are announced as created since version 8."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True, order=True)
class MarkedFile:
    """A data file that may be there; the partition of a table without partitions is empty."""

    partition: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True, order=True)
class Announcement:
    """A file that was announced, when, and as what kind, where its marker says so."""

    file: MarkedFile
    kind: str | None
    at_ms: int


def marker_folder(instant: str) -> str:
    return f"{TEMP_FOLDER}/{instant}"


def marker_path(instant: str, file: MarkedFile, kind: MarkerKind) -> str:
    return f"{marker_folder(instant)}/{file.path}{_INFIX}{kind}"


def leave_marker(storage: Storage, instant: str, file: MarkedFile, kind: MarkerKind) -> None:
    """Step `work.marker`: announce a data file, before the file comes into being."""
    storage.put(marker_path(instant, file, kind), b"")


def read_markers(storage: Storage, instant: str) -> tuple[MarkedFile, ...] | None:
    """The files an instant has announced, sorted; None when it left no markers at all."""
    entries = storage.walk(marker_folder(instant))
    if not entries:
        return None
    found = _announcements(storage, instant, entries)
    return tuple(sorted({one.file for one in found}))


def read_announcements(storage: Storage, instant: str) -> tuple[Announcement, ...]:
    """The same with all that markers tell of these files."""
    entries = storage.walk(marker_folder(instant))
    return tuple(sorted(set(_announcements(storage, instant, entries)), key=_by_file))


def _announcements(
    storage: Storage, instant: str, entries: Iterable[Entry]
) -> Iterator[Announcement]:
    for entry in entries:
        below = entry.path.removeprefix(f"{marker_folder(instant)}/")
        if below.startswith(_SERVER_PREFIX) and "/" not in below and _INFIX not in below:
            if below != _SERVER_TYPE:
                yield from _lines(storage.read(entry.path), entry)
        elif _INFIX in below and not is_checksum(entry.name):
            yield _announced(below, entry)


def _by_file(announcement: Announcement) -> tuple[MarkedFile, str, int]:
    return announcement.file, announcement.kind or "", announcement.at_ms


def delete_markers(storage: Storage, instant: str) -> int:
    """Remove all markers of an instant, once it has ended; the number of files removed."""
    return storage.delete_folder(marker_folder(instant))


def _lines(payload: bytes, entry: Entry) -> Iterator[Announcement]:
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise corrupt(entry.path, error.start, "Names of files are expected, in UTF-8.") from None
    *whole, _ = text.split("\n")
    # The server answers a writer only after its line is written, so a line cut short by a crash
    # announces a file that was never started.
    for line in whole:
        if line.strip():
            yield _announced(line.strip(), entry)


def _announced(text: str, entry: Entry) -> Announcement:
    place, _, kind = text.rpartition(_INFIX)
    partition, _, name = place.rpartition("/")
    check_partition(partition, entry.path)
    check_data_file(name, entry.path)
    return Announcement(MarkedFile(partition, name), kind or None, entry.modified_ms)
