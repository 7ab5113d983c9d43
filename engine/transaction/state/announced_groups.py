"""Announced file groups: what a write that is under way says it is about to touch, ours or Java's.

Inflight files come early and markers late. Those of Java leave out what it inserts into small files
and which file groups an overwrite replaces; its markers name the first, and nothing the second. So
both count, and an overwrite by Java stands for all file groups of its partitions.

Whether the write is alive is another question. Nothing here fails because of what another process
has written: what cannot be read says nothing, and the conflict rules of the commit decide.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakewarden.engine.conflicts.touched_groups import Touched, TouchKind, announced_by
from lakewarden.engine.file_groups.file_names import CDC_SUFFIX, group_in_name
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Entry, Storage
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.transaction.state.markers import (
    direct_files,
    is_list_of_markers,
    listed_files,
    marker_folder,
)

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
