"""File groups and slices: which files together hold the rows of a file group, and since when.

From version 8 on, a log file belongs to the slice with the newest base instant that is not later
than the log's completion; names decide only in version 6. Everything here is a pure function of
file names and of what the timeline says about instants.

Closed files: what a table keeps of files that no writer changes any more, within a bound.

A log is closed once the write that made it has completed: from version 8 on no other one appends
to it. What is kept belongs to one `Table` of one process; another one reads the files themselves.

Visibility: what the timeline says about file groups, read once for a view of the table.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile, log_order
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.formats.instant_metadata.replace import decode as decode_replace
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.kernel.caches import ByteBounded
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.timeline.instants.instant import Action, State, StateFile
from lakewarden.engine.timeline.timeline import ActiveTimeline

_KEPT_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """What tells a closed file from all others that the table ever has.

    In the metadata table a name is not enough: what failed there is made anew by the same one, and
    completes at another time.
    """

    path: str
    size_bytes: int
    completed: str = ""


class LogKeys:
    """The blocks of a log, and the record keys of those that were looked into, by their offset."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self.of_block: dict[int, pa.Array | pa.ChunkedArray] = {}


@dataclass(frozen=True, slots=True)
class ClosedFiles:
    """What is kept of one table: the keys of its logs, and the files of its metadata table."""

    keys: ByteBounded[LogKeys] = field(default_factory=lambda: ByteBounded(_KEPT_BYTES_MAX))
    metadata: ByteBounded[bytes] = field(default_factory=lambda: ByteBounded(_KEPT_BYTES_MAX))
    # Of base files of the metadata table: how many entries they have, and when they were made.
    base_facts: ByteBounded[tuple[int, bytes | None]] = field(
        default_factory=lambda: ByteBounded(_KEPT_BYTES_MAX)
    )


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """Identity of a file group; a file id alone may occur in two partitions."""

    partition: str
    file_id: str


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One state of a file group: at most one base file, and the log files on top of it."""

    SHOWN: ClassVar[tuple[str, ...]] = (
        "partition",
        "file_id",
        "base_instant",
        "base_file",
        "log_files",
        "size_bytes",
    )

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = ()
    # A pending compaction begins a slice that has no base file yet.
    is_pending: bool = False

    @property
    def key(self) -> FileGroupId:
        return FileGroupId(self.partition, self.file_id)

    @property
    def size_bytes(self) -> int:
        base = self.base_file.size_bytes if self.base_file else 0
        return base + sum(log.size_bytes for log in self.log_files)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The base file, if there is one, and the logs."""
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)

    def path(self, file: DataFile) -> str:
        return f"{self.partition}/{file.name}" if self.partition else file.name


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file id, oldest first."""

    key: FileGroupId
    slices: tuple[FileSlice, ...]

    def latest_merged(self) -> FileSlice:
        """The slice to read: logs on top of a pending compaction join the slice below it."""
        *older, newest = self.slices
        while newest.is_pending and newest.base_file is None and older:
            below = older.pop()
            newest = replace(
                below, log_files=below.log_files + newest.log_files, is_pending=below.is_pending
            )
        return newest

    def latest_base(self) -> FileSlice | None:
        """The newest slice with a base file, without its logs: what a read-optimised query sees."""
        for slice_ in reversed(self.slices):
            if slice_.base_file is not None:
                return replace(slice_, log_files=())
        return None


class Completions(Protocol):
    """What slicing asks the timeline."""

    def completion_time(self, requested: str) -> str | None:
        """When an instant completed; None while it is pending or when it was rolled back."""
        ...

    def is_completed(self, requested: str) -> bool:
        """Whether it completed; may be cheaper than asking when."""
        ...


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which instants count, and what stands in the way of a file group."""

    completions: Completions
    names_decide: bool = False
    as_of: str | None = None
    replaced: Mapping[FileGroupId, str] = field(default_factory=dict)
    pending_compactions: Mapping[FileGroupId, str] = field(default_factory=dict)

    def is_visible(self, instant: str) -> bool:
        return self.is_in_reach(instant) and self.completions.is_completed(instant)

    def is_in_reach(self, instant: str) -> bool:
        return self.as_of is None or instant <= self.as_of

    def is_replaced(self, key: FileGroupId) -> bool:
        instant = self.replaced.get(key)
        return instant is not None and self.is_in_reach(instant)


def file_groups(
    partition: str, files: Iterable[DataFile], visibility: Visibility
) -> tuple[FileGroup, ...]:
    """The live file groups of a partition, sorted by file id."""
    by_id: dict[str, list[DataFile]] = {}
    for file in files:
        by_id.setdefault(file.file_id, []).append(file)
    groups = []
    for file_id in sorted(by_id):
        key = FileGroupId(partition, file_id)
        if visibility.is_replaced(key):
            continue
        slices = _slices(key, by_id[file_id], visibility)
        if slices:
            groups.append(FileGroup(key, slices))
    return tuple(groups)


def _slices(
    key: FileGroupId, files: list[DataFile], visibility: Visibility
) -> tuple[FileSlice, ...]:
    pending = visibility.pending_compactions.get(key)
    if len(files) == 1 and isinstance(only := files[0], BaseFile) and pending is None:
        # What most groups of a large partition are, found at once.
        slice_ = FileSlice(key.partition, key.file_id, only.instant, only)
        return (slice_,) if visibility.is_visible(only.instant) else ()
    bases = {
        file.instant: file
        for file in sorted(files, key=lambda file: file.name)
        if isinstance(file, BaseFile) and visibility.is_visible(file.instant)
    }
    logs = [file for file in files if isinstance(file, LogFile) and not file.is_cdc]
    starts = set(bases)
    if pending is not None and visibility.is_in_reach(pending):
        starts.add(pending)
    placed = (_place_by_name if visibility.names_decide else _place_by_completion)(
        logs, starts, visibility
    )
    return tuple(
        FileSlice(
            key.partition,
            key.file_id,
            start,
            bases.get(start),
            tuple(sorted(placed.get(start, ()), key=log_order)),
            is_pending=start == pending and start not in bases,
        )
        for start in sorted(starts | set(placed))
        if start in bases or start in placed
    )


def _place_by_name(
    logs: list[LogFile], starts: set[str], visibility: Visibility
) -> dict[str, list[LogFile]]:
    placed: dict[str, list[LogFile]] = {}
    for log in logs:
        # Version 6 names a log after its slice; its blocks are judged one by one when read.
        if visibility.is_in_reach(log.instant):
            placed.setdefault(log.instant, []).append(log)
    return placed


def _place_by_completion(
    logs: list[LogFile], starts: set[str], visibility: Visibility
) -> dict[str, list[LogFile]]:
    placed: dict[str, list[LogFile]] = {}
    known = sorted(starts)
    for log in sorted(logs, key=log_order):
        completed = visibility.completions.completion_time(log.instant)
        if completed is None or not visibility.is_in_reach(log.instant):
            continue
        position = bisect_right(known, completed)
        if position == 0:
            # Nothing is old enough to carry this log: it begins a slice of its own.
            known.insert(0, log.instant)
            position = 1
        placed.setdefault(known[position - 1], []).append(log)
    return placed


def load_visibility(
    active: ActiveTimeline,
    completions: Completions,
    *,
    names_decide: bool,
    as_of: str | None = None,
) -> Visibility:
    """Which instants count, which file groups were replaced, which await compaction."""
    return Visibility(
        completions=completions,
        names_decide=names_decide,
        as_of=as_of,
        replaced=replaced_groups(active, completions),
        pending_compactions=pending_compactions(active),
    )


def replaced_groups(active: ActiveTimeline, completions: Completions) -> dict[FileGroupId, str]:
    """The file groups that a completed replace commit put others in the place of, and when.

    The archiver keeps a replace commit until its groups are cleaned, so the active ones are all.
    """
    groups: dict[FileGroupId, str] = {}
    for instant in active.completed((Action.REPLACE_COMMIT,)):
        if not completions.is_completed(instant.requested):
            continue
        keys = replaced_by(active.read(instant), active.path(instant))
        groups |= dict.fromkeys(keys, instant.requested)
    return groups


def replaced_by(content: bytes, path: str) -> Iterator[FileGroupId]:
    """The file groups that a replace commit has put others in the place of."""
    for partition, file_ids in decode_replace(content, path).partition_to_replace_file_ids.items():
        for file_id in file_ids:
            yield FileGroupId(partition, file_id)


def pending_compactions(active: ActiveTimeline) -> dict[FileGroupId, str]:
    """The file groups in pending compaction plans, and the instants of the plans."""
    groups: dict[FileGroupId, str] = {}
    for instant in active.pending((Action.COMPACTION,)):
        files = active.files_of(instant)
        plan_file = files and files.in_state(State.REQUESTED)
        plan = _plan(active, plan_file) if plan_file else None
        for operation in plan.operations if plan else ():
            key = FileGroupId(operation.partition_path or "", operation.file_id or "")
            groups[key] = instant.requested
    return groups


def _plan(active: ActiveTimeline, file: StateFile) -> compaction.CompactionPlan | None:
    """The plan in a file; an empty or torn one was never published, so no writer follows it."""
    try:
        return compaction.decode_plan(active.read(file.instant), file.entry.path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return None
