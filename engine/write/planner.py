"""The planner of writes: which file group takes which rows."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import summary
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.live_keys import without_dead
from lakewarden.engine.index.locate import locate
from lakewarden.engine.index.matches import Matches, no_matches
from lakewarden.engine.index.moves import moved
from lakewarden.engine.index.slice_keys import SliceKeys, any_key
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.write.files.group_work import GroupWork
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Placement, Replacement, WriteRequest
from lakewarden.engine.write.routing.divide import divide
from lakewarden.engine.write.routing.route import new_rows, route
from lakewarden.engine.write.routing.sizes import (
    UNLIMITED,
    SizeLimits,
    known_record_bytes,
    record_bytes,
    size_limits,
)
from lakewarden.engine.write.routing.small_files import without_planned


class Planner:
    """Plans writes on one table as it is at one moment."""

    def __init__(
        self,
        state: Snapshot,
        index: IndexChoice,
        settings: Settings,
        ports: Ports,
        *,
        unpacked_bytes: int = 0,
        known: KeyCache | None = None,
        fills_logs: bool = False,
    ) -> None:
        self._state = state
        self._index = index
        self._settings = settings
        self._ports = ports
        self._known = known
        self._fills_logs = fills_logs
        # What the rows take in memory, if they are elsewhere.
        self._unpacked_bytes = unpacked_bytes

    def plan(
        self, rows: KeyedRows, request: WriteRequest, placement: Placement | None = None
    ) -> WritePlan:
        """Where the rows of a request go."""
        if placement is not None:
            placed = replace(rows, keys=placement.keys)
            return WritePlan(placed, placement.groups, stays=placement.stays)
        if request.replaces:
            return WritePlan(rows, self._divided(rows, request), self._replaced(rows, request))
        # A bucket has one file group at a time, so that every row has to know whether it is there.
        if request.finds_keys or self._index.buckets is not None:
            executor = self._ports.executor
            matches = locate(self._state, rows, self._index, executor, self._known)
            return self._routed(rows, matches)
        if request.divides:
            return WritePlan(rows, self._divided(rows, request))
        return self._routed(rows, no_matches())

    def far_limits(self) -> tuple[SizeLimits, bool]:
        """The limits for rows that have not been counted, and whether to measure them."""
        known = known_record_bytes(self._state.timeline.active, self._settings)
        limits = size_limits(self._settings, self._state.config.table_type, known or 1)
        return limits, known is None

    def _routed(self, rows: KeyedRows, matches: Matches) -> WritePlan:
        living = without_dead(self._state, rows, matches, self._ports.executor)
        moves = moved(self._state, rows, living, self._index, self._ports.executor)
        # How large files shall be takes a look at other commits and slices; updates need none.
        has_new = bool(new_rows(moves.rows, moves.matches).any())
        routed = route(
            moves.rows,
            moves.matches,
            self._small_candidates(moves.rows) if has_new else (),
            self._limits(rows) if has_new else UNLIMITED,
            self._ports.ids,
            departures=moves.departures,
            buckets=self._index.buckets,
            refused=self._deleted_in_logs if self._fills_logs else None,
        )
        departing = moves.departures.rows
        return WritePlan(
            moves.rows,
            routed.groups,
            moved=len(np.setdiff1d(departing, moves.matches.rows)),
            departures=len(departing),
        )

    def _small_candidates(self, rows: KeyedRows) -> tuple[FileSlice, ...]:
        if self._index.buckets is not None or rows.is_delete.all():
            return ()
        slices = latest_file_slices(self._state, rows.partition_paths())
        if self._fills_logs and self._state.config.merge.delete_field is not None:
            # Records of logs may be deletes, too.
            slices = tuple(slice_ for slice_ in slices if not slice_.log_files)
        active = self._state.timeline.active
        return without_planned(slices, active, logs_take_rows=self._fills_logs)

    def _deleted_in_logs(self, slice_: FileSlice, keys: pa.StringArray) -> npt.NDArray[np.bool_]:
        """Which keys the logs of a slice delete: a row that comes late would be deleted, too."""
        active = self._state.timeline.active
        asked = tuple(log for log in slice_.log_files if _may_delete(active, log))
        if not asked:
            return np.zeros(len(keys), np.bool_)
        columns, closed = key_columns(self._state.config), self._state.closed_logs
        reader = SliceKeys(self._state.storage, columns, any_key, closed)
        deleted = [
            chunk.cast(pa.string())
            for part in reader.deleted_in(replace(slice_, log_files=asked))
            for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else (part,))
        ]
        found = pc.is_in(keys, pa.chunked_array(deleted, pa.string()))
        return np.asarray(found, np.bool_)

    def _divided(self, rows: KeyedRows, request: WriteRequest) -> tuple[GroupWork, ...]:
        if self._index.buckets is not None:
            return route(
                rows,
                no_matches(),
                (),
                self._limits(rows),
                self._ports.ids,
                buckets=self._index.buckets,
            ).groups
        return divide(
            rows,
            self._limits(rows),
            self._ports.ids,
            workers=self._ports.executor.workers,
            sort=request.sort,
        )

    def _replaced(self, rows: KeyedRows, request: WriteRequest) -> tuple[FileSlice, ...]:
        match request.replacement:
            case Replacement.TOUCHED_PARTITIONS:
                return latest_file_slices(self._state, rows.partition_paths())
            case Replacement.NAMED_PARTITIONS:
                return latest_file_slices(self._state, request.partitions_of(self._state))
            case _:
                return latest_file_slices(self._state, None)

    def _limits(self, rows: KeyedRows) -> SizeLimits:
        active = self._state.timeline.active
        row_bytes = record_bytes(active, self._settings, rows, unpacked_bytes=self._unpacked_bytes)
        limits = size_limits(self._settings, self._state.config.table_type, row_bytes)
        return replace(limits, logs_take_rows=self._fills_logs)


def _may_delete(active: ActiveTimeline, log: LogFile) -> bool:
    """Whether a log may delete keys, by what its commit says."""
    writes = [one for one in active.with_time(log.instant) if one.action.is_write]
    if not (writes and writes[0].is_completed):
        return True
    return summary(active.read(writes[0]), active.path(writes[0])).may_delete
