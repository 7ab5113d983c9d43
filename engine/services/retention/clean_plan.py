"""The plan of a clean: which files may go, and what keeps those that are old and stay.

A pure function of file groups and of what holds files back. A slice may go when a later base file
of its file group was started before the horizon: a reader as of the horizon or later uses that one.
All of a file group goes when it was replaced before the horizon.

What a clean has come to: what is gone, or why nothing was done and what holds it back.

What holds files back: the lists in savepoints, and in plans that are yet to be executed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.engine.file_groups.file_names import DataFile, LogFile
from lakewarden.engine.file_groups.slices import FileGroup, FileGroupId, FileSlice
from lakewarden.engine.formats.avro.container import is_whole_container
from lakewarden.engine.formats.instant_metadata import compaction, replace, savepoint
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.recovery.failed_writes import Recovered
from lakewarden.engine.transaction.sweep.sweep import Swept


class FileHold(StrEnum):
    """Why an old slice stays; the words are shown to users."""

    RETAINED = "retained"
    SAVEPOINT = "savepoint"
    PLAN = "pending_plan"


@dataclass(frozen=True, slots=True)
class FileHolder:
    """An instant that needs some files."""

    hold: FileHold
    instant: str


# By partition and file name.
Held = Mapping[tuple[str, str], FileHolder]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An old slice that stays all the same, and the instant that holds it back."""

    partition: str
    file_id: str
    base_instant: str
    bytes: int
    hold: FileHold
    held_by: str


@dataclass(frozen=True, slots=True)
class OldFile:
    """A file that no retained snapshot needs."""

    partition: str
    name: str
    size_bytes: int

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """All there is of one partition: its file groups with every slice, replaced ones included."""

    partition: str
    groups: Sequence[FileGroup]
    # The groups among them that others were put in the place of, and by which instant.
    replaced: Mapping[FileGroupId, str] = field(default_factory=dict)
    # Files of change data capture, which belong to no slice, but go with one.
    captured: Sequence[LogFile] = ()
    # Every data file that is there, of whatever instant.
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How much of the past is kept: back to an instant, or so many slices of each file group."""

    # None with a policy that counts slices.
    horizon: str | None
    retention: CleanRetention
    held: Held = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanSelection:
    """What may go, and what stays though it is old."""

    files: tuple[OldFile, ...] = ()
    partitions: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()


def select(partitions: Iterable[PartitionView], cut: Cut) -> CleanSelection:
    """What a clean shall delete in some partitions."""
    files: list[OldFile] = []
    emptied: list[str] = []
    kept: list[Kept] = []
    for view in partitions:
        old, stays = _of_partition(view, cut)
        files += old
        kept += stays
        if _is_emptied(view, {file.name for file in old}, cut):
            emptied.append(view.partition)
    return CleanSelection(files=tuple(files), partitions=tuple(emptied), kept=tuple(kept))


def _of_partition(view: PartitionView, cut: Cut) -> tuple[list[OldFile], list[Kept]]:
    files: list[OldFile] = []
    kept: list[Kept] = []
    for group in view.groups:
        replaced = view.replaced.get(group.key)
        superseded = _superseded(group, replaced, cut)
        # The newest first, as Java has them.
        for position in reversed(range(superseded)):
            slice_ = group.slices[position]
            holder = _holder(slice_, cut.held)
            if holder is None:
                files += _files(view, group, position)
            else:
                kept.append(_kept(slice_, holder))
        newest = len(group.slices) if replaced else len(group.slices) - 1
        if cut.horizon is not None:
            retained = FileHolder(FileHold.RETAINED, cut.horizon)
            kept += [_kept(one, retained) for one in group.slices[superseded:newest]]
    return files, kept


def _superseded(group: FileGroup, replaced: str | None, cut: Cut) -> int:
    """How many slices of a file group, from the oldest on, no retained snapshot needs."""
    if cut.retention.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        return len(group.slices) if replaced else _beyond(group, cut.retention.versions)
    assert cut.horizon is not None
    if replaced is not None and replaced < cut.horizon:
        return len(group.slices)
    before = [
        position
        for position, slice_ in enumerate(group.slices)
        if slice_.base_file is not None and slice_.base_instant < cut.horizon
    ]
    return before[-1] if before else 0


def _beyond(group: FileGroup, versions: int) -> int:
    """How many slices are older than the newest ones with a base file."""
    bases = [at for at, slice_ in enumerate(group.slices) if slice_.base_file is not None]
    return bases[-versions] if len(bases) >= versions else 0


def _holder(slice_: FileSlice, held: Held) -> FileHolder | None:
    """Who needs a file of a slice; a slice stays whole, or it goes."""
    files: list[DataFile] = [*slice_.log_files]
    if slice_.base_file is not None:
        files.insert(0, slice_.base_file)
    found = (held.get((slice_.partition, file.name)) for file in files)
    return next((holder for holder in found if holder is not None), None)


def _files(view: PartitionView, group: FileGroup, position: int) -> list[OldFile]:
    """The files of a slice: its base file, its logs, and what was captured of its changes."""
    slice_ = group.slices[position]
    last = position + 1 == len(group.slices)
    until = None if last else group.slices[position + 1].base_instant
    captured = [
        file
        for file in view.captured
        if file.file_id == slice_.file_id
        and (position == 0 or file.instant >= slice_.base_instant)
        and (until is None or file.instant < until)
    ]
    base = [] if slice_.base_file is None else [slice_.base_file]
    files: list[DataFile] = [*base, *slice_.log_files, *captured]
    return [OldFile(slice_.partition, file.name, file.size_bytes) for file in files]


def _kept(slice_: FileSlice, holder: FileHolder) -> Kept:
    return Kept(
        partition=slice_.partition,
        file_id=slice_.file_id,
        base_instant=slice_.base_instant,
        bytes=slice_.size_bytes,
        hold=holder.hold,
        held_by=holder.instant,
    )


def _is_emptied(view: PartitionView, old: set[str], cut: Cut) -> bool:
    """Whether nothing is left of a partition; the table's own folder is not one to be removed."""
    return bool(view.partition) and bool(view.replaced) and view.names <= old


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A clean that has completed; this call started it, or resumed a pending one."""

    instant: str
    completed: str
    files_deleted: int
    bytes_deleted: int
    partitions: tuple[str, ...]
    partitions_deleted: tuple[str, ...] = ()
    # None where versions were counted.
    earliest_retained: str | None = None
    milliseconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cleaned(Shown):
    """The answer of a clean; it is true when something was cleaned, or would be in a dry run."""

    # Without an instant nothing was to be done, or it was a dry run.
    instant: str | None = None
    completed: str | None = None
    files_deleted: int = 0
    bytes_deleted: int = 0
    # The partitions with files that went, and those that went as a whole.
    partitions: tuple[str, ...] = ()
    partitions_deleted: tuple[str, ...] = ()
    earliest_retained: str | None = None
    milliseconds: int = 0
    # What is old and stays, each with the instant that holds it back.
    kept: tuple[Kept, ...] = ()
    # In sentences: where it looked, and why there was nothing to do.
    scope: str = ""
    why_nothing: str | None = None
    # The instant without which more would have been cleaned.
    held_by: str | None = None
    is_dry_run: bool = False
    # What was put in order first: cleans that others had started, failed work, and late files.
    finished: tuple[Finished, ...] = ()
    settled: tuple[Recovered, ...] = ()
    swept: tuple[Swept, ...] = ()
    # Markers, heartbeats and ledgers of ended instants.
    remains_deleted: int = 0

    def __bool__(self) -> bool:
        return self.why_nothing is None

    def __str__(self) -> str:
        if self.why_nothing is not None:
            return f"Nothing was cleaned: {self.why_nothing}"
        extent = f"{self.files_deleted} files, {self.bytes_deleted} bytes"
        places = f"in {len(self.partitions)} partitions"
        held = "" if self.held_by is None else f"; {self.held_by} holds back more"
        if self.is_dry_run:
            return f"A clean would remove {extent}, {places}{held}"
        return f"clean {self.instant}: removed {extent}, {places}{held}"


_PartitionAndName = tuple[str, str]


def held_files(active: ActiveTimeline) -> Mapping[_PartitionAndName, FileHolder]:
    """The files that savepoints and pending plans name, and by which of them they are held."""
    held: dict[_PartitionAndName, FileHolder] = {}
    for instant in active.pending(frozenset(_PLANNED)):
        for file in _of_plan(active, instant):
            held.setdefault(file, FileHolder(FileHold.PLAN, instant.requested))
    for instant in active.savepoints():
        for file in savepointed(active, instant):
            held[file] = FileHolder(FileHold.SAVEPOINT, instant.requested)
    return held


def savepointed(active: ActiveTimeline, instant: Instant) -> Iterator[_PartitionAndName]:
    """The files that a savepoint protects; one that was cut short was never published."""
    content = active.read(instant)
    if not is_whole_container(content):
        return
    metadata = savepoint.decode(content, active.path(instant))
    for partition, listed in metadata.partition_metadata.items():
        for name in listed.savepoint_data_file:
            yield partition, name


def _of_plan(active: ActiveTimeline, instant: Instant) -> Iterator[_PartitionAndName]:
    files = active.files_of(instant)
    requested = None if files is None else files.requested
    if requested is None:
        return
    try:
        yield from _PLANNED[instant.action](active.read(requested.instant), requested.entry.path)
    except CorruptTable as error:
        # A plan that was cut short was never published, and will never be executed.
        if error.code != TORN_PLAN:
            raise


def _of_compaction(content: bytes, path: str) -> Iterator[_PartitionAndName]:
    for operation in compaction.decode_plan(content, path).operations:
        for address in (operation.data_file_path, *operation.delta_file_paths):
            if address:
                yield operation.partition_path or "", address.rpartition("/")[2]


def _of_clustering(content: bytes, path: str) -> Iterator[_PartitionAndName]:
    plan = replace.decode_plan(content, path).clustering_plan
    for group in plan.input_groups if plan else ():
        for slice_ in group.slices:
            for address in (slice_.data_file_path, *slice_.delta_file_paths):
                if address:
                    yield slice_.partition_path or "", address.rpartition("/")[2]


_PLANNED = {
    Action.COMPACTION: _of_compaction,
    Action.LOG_COMPACTION: _of_compaction,
    Action.CLUSTERING: _of_clustering,
}
