"""Markers: a note for every data file, left before the file itself, so that a crash can be undone.

They are direct, one empty file for each data file, or lines in a few lists, as Java's timeline
server writes them. An instant may have both.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.border import check_data_file, check_partition
from lakewarden.engine.storage.checksums import is_checksum
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.storage.side_by_side import both

TEMP_FOLDER = ".hoodie/.temp"

_INFIX = ".marker."
_LIST_PREFIX = "MARKERS"
_TYPE_FILE = "MARKERS.type"


class MarkerKind(StrEnum):
    """What kind of file is announced; logs are announced as created since version 8."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


class MarkerType(StrEnum):
    """How a data file is announced: by a file of its own, or by a line in a list."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


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
    """A file that was announced, how, when, and as what kind, where its marker says so."""

    file: MarkedFile
    type: MarkerType
    kind: str | None
    at_ms: int


def marker_folder(instant: str) -> str:
    return f"{TEMP_FOLDER}/{instant}"


def marker_path(instant: str, file: MarkedFile, kind: MarkerKind) -> str:
    return f"{marker_folder(instant)}/{file.path}{_INFIX}{kind}"


def leave_marker(storage: Storage, instant: str, file: MarkedFile, kind: MarkerKind) -> None:
    """Step `work.marker`: announce a data file, before the file comes into being."""
    storage.put(marker_path(instant, file, kind), b"")


def list_markers(
    storage: Storage, instant: str, number: int, files: Iterable[tuple[MarkedFile, MarkerKind]]
) -> None:
    """Step `work.list`: announce data files by one list, before the first of them comes into being.

    As soon as there is a list, Java's rollback deletes nothing but what is in lists. So each task
    on another machine puts its own, under another number.
    """
    folder = marker_folder(instant)
    lines = "".join(f"{file.path}{_INFIX}{kind}\n" for file, kind in files)
    both(
        storage,
        partial(storage.put, f"{folder}/{_TYPE_FILE}", MarkerType.TIMELINE_SERVER_BASED.encode()),
        partial(storage.put, f"{folder}/{_LIST_PREFIX}{number}", lines.encode()),
    )


def make_direct(storage: Storage, instant: str) -> None:
    """Turn lists that another attempt at an instant has left into direct markers.

    Lists hide direct markers from Java. The type goes first: without it Java finds out itself what
    there is. A list goes when all that it says is said elsewhere.
    """
    entries = storage.list(marker_folder(instant)).files
    lists = [entry for entry in entries if is_list_of_markers(instant, entry)]
    for found in _announcements(storage, instant, lists):
        kind = MarkerKind(found.kind) if found.kind in set(MarkerKind) else MarkerKind.CREATE
        leave_marker(storage, instant, found.file, kind)
    if lists:
        storage.delete(f"{marker_folder(instant)}/{_TYPE_FILE}")
        storage.delete_all([entry.path for entry in lists])


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


def is_list_of_markers(instant: str, entry: Entry) -> bool:
    """Whether a file below the markers of an instant has lines, each of which is a marker."""
    below = entry.path.removeprefix(f"{marker_folder(instant)}/")
    is_named_so = below.startswith(_LIST_PREFIX) and "/" not in below and _INFIX not in below
    return is_named_so and below != _TYPE_FILE


def direct_files(instant: str, entries: Iterable[Entry]) -> Iterator[str]:
    """The paths of the data files that direct markers announce, whatever kind of file it is."""
    for entry in entries:
        if _is_direct(entry):
            below = entry.path.removeprefix(f"{marker_folder(instant)}/")
            yield below.rpartition(_INFIX)[0]


def listed_files(payload: bytes) -> Iterator[str]:
    """The same of a list; lines that are no markers say nothing here."""
    for line in _whole_lines(payload).decode(errors="replace").split("\n"):
        place, infix, _ = line.rpartition(_INFIX)
        if infix:
            yield place


def _announcements(
    storage: Storage, instant: str, entries: Iterable[Entry]
) -> Iterator[Announcement]:
    for entry in entries:
        if is_list_of_markers(instant, entry):
            # It goes with the instant, which may just be ending.
            yield from _lines(storage.read_if_present(entry.path) or b"", entry)
        elif _is_direct(entry):
            below = entry.path.removeprefix(f"{marker_folder(instant)}/")
            yield _announced(below, entry, MarkerType.DIRECT)


def _is_direct(entry: Entry) -> bool:
    return _INFIX in entry.name and not is_checksum(entry.name)


def _by_file(announcement: Announcement) -> tuple[MarkedFile, str, str, int]:
    return announcement.file, announcement.type, announcement.kind or "", announcement.at_ms


def delete_markers_of(storage: Storage, instant: str, is_meant: Callable[[str], bool]) -> None:
    """Remove the direct markers of the files whose names are meant."""
    for entry in storage.walk(marker_folder(instant)):
        name, infix, _ = entry.name.rpartition(_INFIX)
        if infix and is_meant(name):
            storage.delete(entry.path)


def delete_markers(storage: Storage, instant: str) -> int:
    """Remove all markers of an instant, once it has ended; the number of files removed."""
    return storage.delete_folder(marker_folder(instant))


def _lines(payload: bytes, entry: Entry) -> Iterator[Announcement]:
    whole = _whole_lines(payload)
    try:
        text = whole.decode()
    except UnicodeDecodeError as error:
        raise corrupt(entry.path, error.start, "Names of files are expected, in UTF-8.") from None
    for line in text.split("\n"):
        # Blanks count: a partition's path may begin with one.
        if line:
            yield _announced(line, entry, MarkerType.TIMELINE_SERVER_BASED)


def _whole_lines(payload: bytes) -> bytes:
    """The lines that are whole: the server answers a writer only after its line is written, so a
    line cut short by a crash, or on its way, announces a file that was never started."""
    return payload[: payload.rfind(b"\n") + 1]


def _announced(text: str, entry: Entry, marker_type: MarkerType) -> Announcement:
    place, _, kind = text.rpartition(_INFIX)
    partition, _, name = place.rpartition("/")
    check_partition(partition, entry.path)
    check_data_file(name, entry.path)
    file = MarkedFile(partition, name)
    return Announcement(file, marker_type, kind or None, entry.modified_ms)
