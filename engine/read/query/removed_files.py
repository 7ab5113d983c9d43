"""Removed files: what cleans have deleted, and whether a past snapshot is whole without it.

Each clean records what it has deleted, whichever engine made it and whatever its policy. A file is
not missed where a later base file of its file group is read instead, or where the group was
replaced.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.file_names import DataFile
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import (
    FileGroup,
    FileGroupId,
    FileSlice,
    Visibility,
    file_groups,
)
from lakewarden.engine.file_groups.visibility import replaced_by
from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import clean
from lakewarden.engine.read.query.written_files import PlacedFile, data_files_at
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import Timeline

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
