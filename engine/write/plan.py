"""The plan of a write: which file group takes which rows, decided before any file is made."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lakewarden.engine.detection.strategies import DETECTION, Strategy, strategy_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.changes import Located
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.transaction.state.markers import MarkerType
from lakewarden.engine.transaction.state.settings import marker_types
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.outcome import FileIds

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WritePlan:
    """Rows and where they go; `replaced` are file groups that the write puts an end to."""

    rows: KeyedRows
    groups: tuple[GroupWork, ...]
    replaced: tuple[FileSlice, ...] = ()
    # Keys that live on where they are, though other file groups lose them.
    stays: tuple[Located, ...] = ()
    # Rows that were in other partitions only, and how many places rows leave.
    moved: int = 0
    departures: int = 0

    @property
    def replaced_ids(self) -> FileIds:
        found: dict[str, list[str]] = {}
        for slice_ in self.replaced:
            found.setdefault(slice_.partition, []).append(slice_.file_id)
        return {partition: tuple(sorted(found[partition])) for partition in sorted(found)}


def rewritten_bytes(plan: WritePlan, table_type: TableType) -> int:
    """Bytes of existing files that a plan has rewritten; logs are added without looking."""
    is_copy_on_write = table_type is TableType.COPY_ON_WRITE
    return sum(
        work.slice.size_bytes
        for work in plan.groups
        if work.slice is not None and (is_copy_on_write or len(work.inserts))
    )


def markers_of(settings: Settings, plan: WritePlan) -> frozenset[MarkerType]:
    """How the files of a plan are announced.

    The transactional strategy is one of direct markers, in Java as well.
    """
    has_rivals = settings[DETECTION] and strategy_of(settings) is not Strategy.TRANSACTIONAL
    return marker_types(settings, len(plan.groups), has_rivals=has_rivals)


def arranged(plan: WritePlan) -> WritePlan:
    """The same plan over rows that stand group by group.

    One copy of the rows then serves all groups, each of which is a stretch of it.
    """
    order = [part for group in plan.groups for part in _parts(group)]
    if not order:
        return plan
    groups, start = [], 0
    for group in plan.groups:
        moved = []
        for part in _parts(group):
            moved.append(np.arange(start, start + len(part)))
            start += len(part)
        groups.append(GroupWork(group.key, group.slice, *moved))
    return replace(plan, rows=plan.rows.take(np.concatenate(order)), groups=tuple(groups))


def _parts(group: GroupWork) -> tuple[Places, Places, Places]:
    return group.updates, group.inserts, group.departures
