"""Markers: a note for every data file, left before the file itself, so that a crash can be undone.

They are direct, one empty file for each data file, or lines in a few lists, as Java's timeline
server writes them. An instant may have both.

Announced file groups: what a write that is under way says it is about to touch, ours or Java's.

Inflight files come early and markers late. Those of Java leave out what it inserts into small files
and which file groups an overwrite replaces; its markers name the first, and nothing the second. So
both count, and an overwrite by Java stands for all file groups of its partitions.

Whether the write is alive is another question. Nothing here fails because of what another process
has written: what cannot be read says nothing, and the conflict rules of the commit decide.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from lakewarden.engine.conflicts.touched_groups import Touched, TouchKind, announced_by
from lakewarden.engine.file_groups.file_names import CDC_SUFFIX, group_in_name
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.paths import check_data_file, check_partition
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.storage.side_by_side import both
from lakewarden.engine.storage.streams import is_checksum
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline

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


# Of more partitions than these the markers are looked for all at once.
PARTITIONS_LISTED_MAX = 8


@dataclass(frozen=True, slots=True)
class AnnouncedGroups:
    """What a pending write is about to touch, as far as it has said."""

    touched: Touched
    # Partitions whose file groups it replaces without naming them.
    replaced: frozenset[str] = frozenset()
    replaces_all: bool = False

    def among(self, groups: Iterable[FileGroupId]) -> frozenset[FileGroupId]:
        """Those of some file groups that the write is about to touch."""
        chosen = frozenset(groups)
        if self.replaces_all:
            return chosen
        by_partition = frozenset(one for one in chosen if one.partition in self.replaced)
        return (chosen & self.touched.keys) | by_partition

    def with_those_among(self, groups: Iterable[FileGroupId]) -> Touched:
        """What it touches, with those of some file groups that only their partition names."""
        return replace(self.touched, keys=self.touched.keys | self.among(groups))


def announced_groups(
    storage: Storage, snapshot: Snapshot, instant: Instant, partitions: Collection[str] = ()
) -> AnnouncedGroups:
    """What a pending write has announced; markers of some partitions only, where any are given.

    The snapshot has to know the ledger of the write, which tells ours from Java's.
    """
    return AnnouncementReader(storage).read(snapshot, instant, partitions)


class AnnouncementReader:
    """Reads announcements again and again, and of each what may have changed since."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._inflight: dict[str, AnnouncedGroups] = {}
        self._lists: dict[str, tuple[Entry, Touched]] = {}

    def read(
        self, snapshot: Snapshot, instant: Instant, partitions: Collection[str] = ()
    ) -> AnnouncedGroups:
        """What a pending write has announced by now."""
        announced = self._in_inflight(snapshot, instant)
        marked = self._in_markers(instant.requested, partitions)
        return replace(announced, touched=_union([announced.touched, *marked]))

    def _in_inflight(self, snapshot: Snapshot, instant: Instant) -> AnnouncedGroups:
        known = self._inflight.get(instant.requested)
        if known is not None:
            return known
        active = snapshot.timeline.active
        found = _in_inflight(active, instant)
        is_ours = snapshot.ledger(instant.requested).last_claim is not None
        if not is_ours and instant.action is Action.DELTA_COMMIT:
            # Java's inflight files don't tell logs from base files, and updates go to logs.
            touched = replace(found.touched, appended=found.touched.keys)
            found = replace(found, touched=touched)
        if found.touched.keys or found.replaced or found.replaces_all:
            # It is written once. One that says nothing may just be on its way.
            self._inflight[instant.requested] = found
        return found

    def _in_markers(self, instant: str, partitions: Collection[str]) -> Iterator[Touched]:
        entries = self._entries(instant, partitions)
        yield _touched(direct_files(instant, entries))
        for entry in entries:
            if is_list_of_markers(instant, entry):
                yield self._in_list(entry)

    def _entries(self, instant: str, partitions: Collection[str]) -> Sequence[Entry]:
        folder = marker_folder(instant)
        if not 0 < len(partitions) <= PARTITIONS_LISTED_MAX:
            return self._storage.walk(folder)
        entries = list(self._storage.list(folder).files)
        for partition in sorted(set(partitions) - {""}):
            entries += self._storage.list(f"{folder}/{partition}").files
        return entries

    def _in_list(self, entry: Entry) -> Touched:
        known = self._lists.get(entry.path)
        if known is not None and known[0] == entry:
            return known[1]
        found = _touched(listed_files(self._storage.read_if_present(entry.path) or b""))
        self._lists[entry.path] = entry, found
        return found


def _in_inflight(active: ActiveTimeline, instant: Instant) -> AnnouncedGroups:
    announced = announced_by(active, instant)
    replaces_all = announced.operation == Operation.INSERT_OVERWRITE_TABLE and bool(
        announced.unnamed
    )
    is_overwrite = announced.operation == Operation.INSERT_OVERWRITE
    replaced = announced.unnamed if is_overwrite else frozenset[str]()
    return AnnouncedGroups(announced.touched, replaced, replaces_all)


def _touched(paths: Iterable[str]) -> Touched:
    logs: set[FileGroupId] = set()
    bases: set[FileGroupId] = set()
    for path in paths:
        partition, _, name = path.rpartition("/")
        file_id, is_log = group_in_name(name)
        # Change data comes beside a base file.
        if file_id and not name.endswith(CDC_SUFFIX):
            (logs if is_log else bases).add(FileGroupId(partition, file_id))
    return Touched(TouchKind.WRITE, frozenset(logs | bases), appended=frozenset(logs - bases))


def _union(parts: Iterable[Touched]) -> Touched:
    found = list(parts)
    keys = frozenset[FileGroupId]().union(*(one.keys for one in found))
    rewritten = frozenset[FileGroupId]().union(*(one.keys - one.appended for one in found))
    return Touched(TouchKind.WRITE, keys, appended=keys - rewritten)
