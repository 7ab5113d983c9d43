"""The shape of a plan: which files it names in which file groups, read from its requested file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.formats.instant_metadata import clean, compaction, replace, rollback
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles

_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """A file group in a plan, and the bare names of its files that the plan is about."""

    partition: str
    file_id: str
    names: tuple[str, ...] = ()

    @property
    def log_files(self) -> int:
        parsed = (parse_file_name(name, 0) for name in self.names)
        return sum(isinstance(file, LogFile) for file in parsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShape:
    """What a plan is about. Bytes are those that its planner reckoned with, if it says so."""

    groups: tuple[PlannedGroup, ...] = ()
    # What Hudi counts of it: operations of a compaction, groups of a clustering.
    operations: int = 0
    # Partitions that a clean removes as a whole.
    emptied: tuple[str, ...] = ()
    input_bytes: int | None = None

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted({*(group.partition for group in self.groups), *self.emptied}))


def shape_of(snapshot: Snapshot, files: InstantFiles) -> PlanShape:
    """The shape of a pending plan; empty where there is no plan, or none that is whole."""
    if files.started_as not in _READERS or files.requested is None:
        return PlanShape()
    content = snapshot.timeline.active.read(files.requested.instant)
    try:
        return shape_in(files.started_as, content, files.requested.entry.path)
    except CorruptTable as error:
        if error.code != TORN_PLAN:
            raise
        return PlanShape()


def shape_in(action: Action, content: bytes, path: str) -> PlanShape:
    """The shape of a plan by what its requested file holds, or is going to hold."""
    return _READERS[action](content, path)


def _of_compaction(content: bytes, path: str) -> PlanShape:
    operations = compaction.decode_plan(content, path).operations
    groups = [
        PlannedGroup(
            partition=one.partition_path or "",
            file_id=one.file_id or "",
            names=_bare([one.data_file_path, *one.delta_file_paths]),
        )
        for one in operations
    ]
    input_bytes = sum(_reckoned(one.metrics) for one in operations)
    return PlanShape(groups=tuple(groups), operations=len(operations), input_bytes=input_bytes)


def _of_clustering(content: bytes, path: str) -> PlanShape:
    plan = replace.decode_plan(content, path).clustering_plan or replace.ClusteringPlan()
    groups = [
        PlannedGroup(
            partition=slice_.partition_path or "",
            file_id=slice_.file_id or "",
            names=_bare([slice_.data_file_path, *slice_.delta_file_paths]),
        )
        for group in plan.input_groups
        for slice_ in group.slices
    ]
    input_bytes = sum(_reckoned(group.metrics) for group in plan.input_groups)
    count = len(plan.input_groups)
    return PlanShape(groups=tuple(groups), operations=count, input_bytes=input_bytes)


def _of_clean(content: bytes, path: str) -> PlanShape:
    plan = clean.decode_plan(content, path)
    named = (
        (partition, file.file_path)
        for partition, files in plan.file_paths_to_be_deleted_per_partition.items()
        for file in files
    )
    return PlanShape(groups=_grouped(named), emptied=plan.partitions_to_be_deleted)


def _of_rollback(content: bytes, path: str) -> PlanShape:
    plan = rollback.decode_plan(content, path)
    named = (
        (request.partition_path, name)
        for request in plan.rollback_requests
        for name in (*request.files_to_be_deleted, *request.log_blocks_to_be_deleted)
    )
    return PlanShape(groups=_grouped(named))


_READERS = {
    Action.COMPACTION: _of_compaction,
    Action.LOG_COMPACTION: _of_compaction,
    Action.CLUSTERING: _of_clustering,
    Action.CLEAN: _of_clean,
    Action.ROLLBACK: _of_rollback,
}


def _bare(addresses: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(address.rpartition("/")[2] for address in addresses if address)


def _grouped(named: Iterable[tuple[str, str | None]]) -> tuple[PlannedGroup, ...]:
    """Files by the file group that their names tell."""
    groups: dict[tuple[str, str], list[str]] = {}
    for partition, name in _with_names(named):
        file = parse_file_name(name, 0)
        groups.setdefault((partition, file.file_id if file else ""), []).append(name)
    return tuple(
        PlannedGroup(partition=partition, file_id=file_id, names=tuple(groups[partition, file_id]))
        for partition, file_id in sorted(groups)
    )


def _with_names(named: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    for partition, address in named:
        for name in _bare([address]):
            yield partition, name


def _reckoned(metrics: Mapping[str, float]) -> int:
    """Bytes of logs, which are known exactly, and of base files in whole megabytes."""
    log_bytes = int(metrics.get("TOTAL_LOG_FILES_SIZE", 0))
    read = int(metrics.get("TOTAL_IO_READ_MB", 0)) * _MEGABYTE
    return max(log_bytes, read)
