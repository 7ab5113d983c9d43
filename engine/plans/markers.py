"""Markers: a note for every data file, left before the file itself, so that a crash can be undone.

Ours are direct: one empty file for each data file. Java's may also be lines in a few files of its
timeline server, which only Java writes. An instant may have both after a take-over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage

TEMP_FOLDER = ".hoodie/.temp"

_INFIX = ".marker."
_SERVER_TYPE = "MARKERS.type"
_SERVER_PREFIX = "MARKERS"
_NOT_NAMES = ("", ".", "..")


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


def marker_folder(instant: str) -> str:
    return f"{TEMP_FOLDER}/{instant}"


def marker_path(instant: str, file: MarkedFile, kind: MarkerKind) -> str:
    return f"{marker_folder(instant)}/{file.path}{_INFIX}{kind}"


def leave_marker(storage: Storage, instant: str, file: MarkedFile, kind: MarkerKind) -> None:
    """Announce a data file; to be done before the file comes into being."""
    storage.put(marker_path(instant, file, kind), b"")


def read_markers(storage: Storage, instant: str) -> tuple[MarkedFile, ...] | None:
    """The files an instant has announced, sorted; None when it left no markers at all."""
    folder = marker_folder(instant)
    entries = storage.walk(folder)
    if not entries:
        return None
    marked: set[MarkedFile] = set()
    for entry in entries:
        below = entry.path.removeprefix(f"{folder}/")
        if below.startswith(_SERVER_PREFIX) and "/" not in below and _INFIX not in below:
            if below != _SERVER_TYPE:
                marked.update(_lines(storage.read(entry.path), entry.path))
        elif _INFIX in below:
            marked.add(_announced(below, entry.path))
    return tuple(sorted(marked))


def delete_markers(storage: Storage, instant: str) -> int:
    """Remove all markers of an instant, once it has ended; the number of files removed."""
    return storage.delete_folder(marker_folder(instant))


def _lines(payload: bytes, path: str) -> Iterator[MarkedFile]:
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise corrupt(path, error.start, "Names of files are expected, in UTF-8.") from None
    *whole, _ = text.split("\n")
    # The server answers a writer only after its line is written, so a line cut short by a crash
    # announces a file that nobody has begun.
    for line in whole:
        if line.strip():
            yield _announced(line.strip(), path)


def _announced(text: str, path: str) -> MarkedFile:
    place, _, _ = text.rpartition(_INFIX)
    if not place or any(part in _NOT_NAMES for part in place.split("/")):
        raise corrupt(path, None, f"{text!r:.200} is not the name of a marker.")
    partition, _, name = place.rpartition("/")
    return MarkedFile(partition, name)
