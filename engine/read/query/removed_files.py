"""Removed files: what cleans have deleted, and whether a past snapshot is whole without it.

Each clean records what it has deleted, whichever engine made it and whatever its policy. A file is
not missed where a later base file of its file group is read instead, or where the group was
replaced.

Written files: what writes say of themselves, archived ones too: their files, and what they
replaced.

Broken files: Parquet files that have no footer, or none that can be read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import (
    FileGroup,
    FileGroupId,
    FileSlice,
    Visibility,
    file_groups,
    replaced_by,
)
from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import clean, commit
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A base or log file and its partition; it need not be there any more."""

    partition: str
    file: DataFile

    @property
    def key(self) -> FileGroupId:
        return FileGroupId(self.partition, self.file.file_id)

    @property
    def instant(self) -> str:
        """The write that made it; in version 6 a log has the name of its slice."""
        return self.file.instant

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.file.name}" if self.partition else self.file.name


@dataclass(frozen=True, slots=True)
class Written:
    """What some writes have made, and the file groups that they have put others in the place of."""

    files: tuple[PlacedFile, ...]
    replaced: Mapping[FileGroupId, str]


def written_by(timeline: Timeline, writes: Sequence[Instant]) -> Written:
    """What the metadata of some writes says."""
    files: list[PlacedFile] = []
    replaced: dict[FileGroupId, str] = {}
    for instant, content, path in contents_of(timeline, writes):
        for partition, stats in commit.decode(content, path).partition_to_write_stats.items():
            files += data_files_at(partition, (stat.path for stat in stats if stat.path))
        if instant.action is Action.REPLACE_COMMIT:
            replaced |= dict.fromkeys(replaced_by(content, path), instant.requested)
    return Written(tuple(files), replaced)


def data_files_at(partition: str, addresses: Iterable[str]) -> Iterator[PlacedFile]:
    """The data files among some addresses; files of change data capture hold no rows."""
    for address in addresses:
        file = parse_file_name(address.rpartition("/")[2], 0)
        if file is not None and not (isinstance(file, LogFile) and file.is_cdc):
            yield PlacedFile(partition, file)


def contents_of(
    timeline: Timeline, writes: Sequence[Instant]
) -> Iterator[tuple[Instant, bytes, str]]:
    """The metadata of writes, oldest first."""
    active = timeline.active
    archived = [instant for instant in writes if active.files_of(instant) is None]
    if archived:
        wanted = frozenset(archived)
        first, last = min(archived).requested, max(archived).requested
        rows = list(timeline.archive.rows(COMPLETED_WRITES, first, last))
        for row in reversed(rows):
            if row.instant in wanted and row.metadata is not None:
                yield row.instant, row.metadata, str(row.instant)
    for instant in writes:
        if active.files_of(instant) is not None:
            yield instant, active.read(instant), active.path(instant)


_REPLACES = (Action.REPLACE_COMMIT,)


@dataclass(frozen=True, slots=True)
class CleanRemoval:
    """What one clean has removed."""

    clean: Instant
    files: tuple[PlacedFile, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """A past state that a reader asks for: what is visible, and the file groups that remain."""

    visibility: Visibility
    groups: Sequence[FileGroup]
    # Those that were looked into; None stands for all of them.
    partitions: Collection[str] | None = None

    @property
    def bases(self) -> Mapping[FileGroupId, str]:
        """Since when each file group needs no older file; those with logs only have no say."""
        slices = (group.latest_merged() for group in self.groups)
        return {one.key: one.base_instant for one in slices if one.base_file is not None}

    @classmethod
    def of(
        cls,
        files: Mapping[str, Sequence[DataFile]],
        visibility: Visibility,
        partitions: Collection[str] | None = None,
    ) -> "Past":
        """The past that the files of some partitions give, or those of all."""
        found = (file_groups(partition, files[partition], visibility) for partition in files)
        return cls(visibility, tuple(group for groups in found for group in groups), partitions)


@dataclass(frozen=True, slots=True)
class Replaced:
    """The file groups that others were put in the place of, when, as far as the archive tells."""

    groups: Mapping[FileGroupId, tuple[str, ...]] = field(default_factory=dict)

    def after(self, removed: PlacedFile) -> tuple[str, ...]:
        """The instants that have replaced the file's group, from its write on, oldest first."""
        found = self.groups.get(removed.key, ())
        return tuple(sorted(one for one in found if one >= removed.instant))


def removals(
    timeline: Timeline, since: str = "", until: str | None = None
) -> Iterator[CleanRemoval]:
    """What the cleans that began after a moment have removed, newest first.

    What an older one has removed was not seen any more as of that moment. One that is pending
    counts: it is about to delete, and may have started to.
    """
    active = timeline.active
    for instant in reversed(active.instants):
        is_within = instant.requested > since and (until is None or instant.requested <= until)
        if instant.action is Action.CLEAN and is_within:
            yield _active_removal(timeline, instant)
    if active.layout.version == 1 and timeline.is_active_since(since):
        # The archive of version 6 can only be read as a whole.
        return
    for row in timeline.archive.rows((Action.CLEAN,), since=since or None, until=until):
        is_active = active.files_of(row.instant) is not None
        if not is_active and row.metadata is not None and row.instant.requested > since:
            yield CleanRemoval(row.instant, _deleted(row.metadata, str(row.instant)))


@dataclass(frozen=True, slots=True)
class Missed:
    """A file that a past can't do without, and the clean that has removed it."""

    clean: Instant
    removed: PlacedFile

    @property
    def why(self) -> str:
        return f"The clean {self.clean.requested} removed {self.removed.path}, which it needs."


def first_missed(
    state: Snapshot, past: Past, since: str, until: str | None = None
) -> Missed | None:
    """A file that a past can't do without; the cleans of some time tell what is gone."""
    for removal in removals(state.timeline, since, until):
        for removed in _gone(state, past, removal):
            return Missed(removal.clean, removed)
    return None


def _gone(state: Snapshot, past: Past, removal: CleanRemoval) -> list[PlacedFile]:
    """What a past misses of the files that one clean has removed; asks further only in doubt."""
    bases, partitions = past.bases, past.partitions
    missed = [
        removed
        for removed in removal.files
        if (partitions is None or removed.partition in partitions)
        and not past.visibility.is_replaced(removed.key)
        and bases.get(removed.key, "") <= removed.instant
        and past.visibility.is_visible(removed.instant)
    ]
    if not removal.clean.is_completed:
        # It may not have come to these files yet.
        missed = _not_there(state, missed)
    if missed:
        replaced = archived_replaces(state.timeline, min(one.instant for one in missed))
        is_visible = past.visibility.is_visible
        missed = [one for one in missed if not any(map(is_visible, replaced.after(one)))]
    return missed


def first_vanished(state: Snapshot, slices: Iterable[FileSlice]) -> Missed | None:
    """A file of some slices that a clean has removed which is not through yet.

    Until it is, the metadata table has all of its files.
    """
    for instant in state.timeline.active.pending((Action.CLEAN,)):
        removal = _active_removal(state.timeline, instant)
        doomed = {one.path: one for one in removal.files}
        needed = {slice_.path(file) for slice_ in slices for file in slice_.files}
        for removed in _not_there(state, [doomed[path] for path in sorted(doomed.keys() & needed)]):
            return Missed(instant, removed)
    return None


def _not_there(state: Snapshot, files: Sequence[PlacedFile]) -> list[PlacedFile]:
    """Those of some files that the storage does not have; one look at each partition."""
    listed = StorageListing(state.storage).files(sorted({one.partition for one in files}))
    names = {partition: {file.name for file in found} for partition, found in listed.items()}
    return [one for one in files if one.file.name not in names[one.partition]]


def archived_replaces(timeline: Timeline, since: str) -> Replaced:
    """What the archived replace commits from a moment on have replaced."""
    found: dict[FileGroupId, tuple[str, ...]] = {}
    for row in timeline.archive.rows(_REPLACES, since=since):
        if row.metadata is not None:
            for key in replaced_by(row.metadata, str(row.instant)):
                found[key] = (*found.get(key, ()), row.instant.requested)
    return Replaced(found)


def being_removed(timeline: Timeline) -> frozenset[tuple[str, str]]:
    """Partition and name of each file that a pending clean removes, or has removed already."""
    pending = timeline.active.pending((Action.CLEAN,))
    removed = (file for one in pending for file in _active_removal(timeline, one).files)
    return frozenset((file.partition, file.file.name) for file in removed)


def _active_removal(timeline: Timeline, instant: Instant) -> CleanRemoval:
    active = timeline.active
    if instant.is_completed:
        return CleanRemoval(instant, _deleted(active.read(instant), active.path(instant)))
    files = active.files_of(instant)
    requested = None if files is None else files.requested
    if requested is None:
        return CleanRemoval(instant, ())
    content = active.read(requested.instant)
    # A torn plan was never published, so no process has run it.
    return CleanRemoval(
        instant, _planned(content, requested.entry.path) if is_whole_container(content) else ()
    )


def _planned(content: bytes, path: str) -> tuple[PlacedFile, ...]:
    plan = clean.decode_plan(content, path)
    found: list[PlacedFile] = []
    for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
        found += data_files_at(partition, names)
    for partition, named in plan.file_paths_to_be_deleted_per_partition.items():
        found += data_files_at(partition, (one.file_path for one in named if one.file_path))
    return tuple(found)


def _deleted(content: bytes, path: str) -> tuple[PlacedFile, ...]:
    """What a completed clean has deleted; what it has failed to is not listed any more, either."""
    found: list[PlacedFile] = []
    for partition, one in clean.decode(content, path).partition_metadata.items():
        names = (*one.delete_path_patterns, *one.success_delete_files, *one.failed_delete_files)
        found += data_files_at(partition, dict.fromkeys(names))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that is no Parquet file, and why."""

    path: str
    reason: str
    # A file that no write of the table has made, as its name tells.
    is_foreign: bool = False


def broken_files(
    storage: Storage,
    executor: Executor,
    partitions: Collection[str] = (),
    instants: Collection[str] = (),
) -> Iterator[BrokenFile]:
    """The broken files of some partitions and writes, of all without any; only footers are read.

    Files that only lie in the partitions come last; they are of no write.
    """
    chosen = tuple(partitions) or None
    listing = StorageListing(storage)
    paths = [
        f"{partition}/{file.name}" if partition else file.name
        for partition, files in listing.files(chosen).items()
        for file in files
        if isinstance(file, BaseFile)
        and file.extension == "parquet"
        and (not instants or file.instant in instants)
    ]
    yield from broken_among(storage, executor, paths)
    if not instants:
        foreign = [path for path in listing.foreign(chosen) if path.endswith(".parquet")]
        for found in broken_among(storage, executor, foreign):
            yield replace(found, is_foreign=True)


def broken_among(
    storage: Storage, executor: Executor, paths: Sequence[str]
) -> Iterator[BrokenFile]:
    """Those of some Parquet files that are broken."""
    for found in executor.map(partial(_checked, storage), paths):
        if found is not None:
            yield found


def _checked(storage: Storage, path: str) -> BrokenFile | None:
    try:
        BaseReader(storage).metadata(path)
    except CorruptTable as error:
        return BrokenFile(path, error.why)
    return None
