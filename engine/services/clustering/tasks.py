"""Tasks of a clustering: which slices become which new files, decided before any is written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.file_names import (
    BaseFile,
    DataFile,
    LogFile,
    log_order,
    parse_file_name,
)
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.replace import ClusteringGroup, ClusteringSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.services.clustering.order import RowOrder
from lakewarden.engine.write.files.spec import WriteSpec

# File name -> file, by partition.
KnownFiles = Mapping[str, Mapping[str, DataFile]]


@dataclass(frozen=True, slots=True)
class NanNotes:
    """Where NaN is: a footer does not tell."""

    # Columns that have one in some file.
    known: frozenset[str] = frozenset()
    # File name -> columns that nothing is known of, so that their values have to be looked at.
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """Slices of a partition whose rows go into new file groups, as many as there are ids."""

    # The number of its first file within the plan; others follow.
    number: int
    partition: str
    slices: tuple[FileSlice, ...]
    file_ids: tuple[str, ...]
    nan: NanNotes = field(default_factory=NanNotes)

    @property
    def size_bytes(self) -> int:
        return sum(slice_.size_bytes for slice_ in self.slices)

    @property
    def has_logs(self) -> bool:
        return any(slice_.log_files or slice_.base_file is None for slice_ in self.slices)


def cluster_tasks(
    groups: Sequence[ClusteringGroup], known: KnownFiles, ids: Ids, *, is_sorted: bool
) -> tuple[ClusterTask, ...]:
    """The tasks of a plan; rows that are not sorted need not meet those of other files."""
    tasks: list[ClusterTask] = []
    number = 0
    for group in groups:
        for partition, slices in _by_partition(group, known).items():
            outputs = max(group.num_output_file_groups or 1, 1)
            for share in _shares(slices, outputs, is_sorted=is_sorted):
                count = outputs if len(share) == len(slices) else 1
                file_ids = tuple(f"{ids.fresh()}-0" for _ in range(count))
                tasks.append(ClusterTask(number, partition, share, file_ids))
                number += count
    return tuple(tasks)


def consumed_files(groups: Sequence[ClusteringGroup]) -> dict[FileGroupId, frozenset[str]]:
    """The files that the new ones stand for."""
    return {
        FileGroupId(one.partition_path or "", one.file_id or ""): frozenset(_names(one))
        for group in groups
        for one in group.slices
    }


def _by_partition(group: ClusteringGroup, known: KnownFiles) -> dict[str, tuple[FileSlice, ...]]:
    found: dict[str, tuple[FileSlice, ...]] = {}
    for one in group.slices:
        partition = one.partition_path or ""
        files = known.get(partition, {})
        found[partition] = (*found.get(partition, ()), _slice_of(one, partition, files))
    return found


def _slice_of(planned: ClusteringSlice, partition: str, known: Mapping[str, DataFile]) -> FileSlice:
    """Exactly the files that the plan names; one that is gone is missed when it is read."""
    if planned.bootstrap_file_path:
        raise InvalidRequest(
            "unsupported_bootstrap",
            what=f"File group {planned.file_id} has a bootstrapped base file.",
            why="Its rows are in a file outside the table.",
            now="Cluster it with Hudi.",
        )
    parsed = [known.get(name) or parse_file_name(name, 0) for name in _names(planned)]
    bases = [file for file in parsed if isinstance(file, BaseFile)]
    logs = sorted((file for file in parsed if isinstance(file, LogFile)), key=log_order)
    first = bases[0].instant if bases else logs[0].instant if logs else ""
    return FileSlice(
        partition, planned.file_id or "", first, bases[0] if bases else None, tuple(logs)
    )


def _names(planned: ClusteringSlice) -> Iterator[str]:
    for address in (planned.data_file_path, *planned.delta_file_paths):
        if address:
            yield address.rpartition("/")[2]


def _shares(
    slices: tuple[FileSlice, ...], outputs: int, *, is_sorted: bool
) -> Iterator[tuple[FileSlice, ...]]:
    """Slices for each new file, of about the same size; all together where rows have to meet."""
    if is_sorted or outputs > len(slices):
        yield slices
        return
    left, size = outputs, sum(slice_.size_bytes for slice_ in slices)
    share: list[FileSlice] = []
    gathered = 0
    for place, slice_ in enumerate(slices):
        share.append(slice_)
        gathered += slice_.size_bytes
        is_enough = gathered * left >= size
        is_short = len(slices) - place - 1 == left - 1
        if left > 1 and (is_enough or is_short):
            yield tuple(share)
            left, size = left - 1, size - gathered
            share, gathered = [], 0
    yield tuple(share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """How files are made, and in which order their rows are."""

    write: WriteSpec
    order: RowOrder = field(default_factory=RowOrder)
    copied_rows_min: int
    sorted_together_bytes: int
