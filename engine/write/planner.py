"""The planner of writes: which file group takes which rows.

Phases: how long each part of a write took.

What a write knows of its rows and of the table before it begins an instant.

The new keys of a plan: which of its rows have keys that no other write may bring meanwhile.

The read scopes of a write: where rows of other writers would change what it does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.conflicts.conflicts import ConflictStrategy, strategy_of
from lakewarden.engine.conflicts.touched_groups import ReadScope
from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import summary
from lakewarden.engine.index.incoming import Matches, no_matches
from lakewarden.engine.index.key_check import NewKeys, Places
from lakewarden.engine.index.kinds import Identity, IndexChoice, KeyScope
from lakewarden.engine.index.locate import latest_file_slices, locate
from lakewarden.engine.index.moves import moved, without_dead
from lakewarden.engine.index.slice_keys import SliceKeys, any_key, key_columns
from lakewarden.engine.kernel.clock import Clock
from lakewarden.engine.kernel.events import PROGRESS, Event, EventSink
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig, TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.write.distributed_rows import PreparedDistributedRows, RewriteWorkers
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.plan import WritePlan
from lakewarden.engine.write.request import Effect, Findings, Placement, Replacement, WriteRequest
from lakewarden.engine.write.routing.route import divide, new_rows, route, without_planned
from lakewarden.engine.write.routing.sizes import (
    INSERTS_TO_LOGS,
    UNLIMITED,
    SizeLimits,
    known_record_bytes,
    record_bytes,
    size_limits,
)
from lakewarden.engine.write.streams import Turn


class Phases:
    """Adds up seconds by phase, in the order in which phases first came."""

    def __init__(self, clock: Clock, events: EventSink) -> None:
        self._clock = clock
        self._events = events
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = self._clock.elapsed_seconds()
        self._events(Event(PROGRESS, {"step": name}))
        try:
            yield
        finally:
            spent = self._clock.elapsed_seconds() - started
            self._seconds[name] = self._seconds.get(name, 0.0) + spent
            self._events(Event(f"write.{name}", {"seconds": spent}))

    @property
    def seconds(self) -> dict[str, float]:
        return dict(self._seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Rows that are fit to be written, and the table as it was when they were."""

    state: Snapshot
    # The table's schema before the write, and the one to write with.
    current: TableSchema
    schema: TableSchema
    index: IndexChoice
    rows: KeyedRows
    identity: Identity
    indexes: tuple[IndexDefinition, ...] = ()
    row_indexes: RowIndexes = field(default_factory=RowIndexes)
    # Where the rows are, if only what the plan sees of them is here.
    distributed: PreparedDistributedRows | None = None
    rewrite_workers: RewriteWorkers | None = None
    # What the write does, if its rows tell and not only the files.
    effect: Effect | None = None
    placement: Placement | None = None
    # What the rows follow from.
    findings: Findings = field(default_factory=Findings)
    # Whether a commit would say nothing.
    is_nothing: bool = False
    # The turn of the batch that the rows are, if they are one of a stream.
    turn: Turn | None = None

    @property
    def config(self) -> TableConfig:
        return self.state.config

    @property
    def has_partitioned_record_index(self) -> bool:
        return any(one.partition == RECORD_INDEX and one.is_partitioned for one in self.indexes)

    @property
    def has_one_place(self) -> bool:
        """Whether there are partitions, and a record index that tells of one place of each key."""
        has_index = self.config.has_metadata(RECORD_INDEX) and self.config.is_partitioned
        return has_index and not self.has_partitioned_record_index

    @property
    def may_repeat_keys(self) -> bool:
        """Whether keys may be in several partitions, and the record index tells of one place."""
        return self.has_one_place and self.identity.scope is KeyScope.PARTITION

    def fills_logs(self, settings: Settings, request: WriteRequest) -> bool:
        """Whether logs of file groups take in new rows: only where the index has found the keys."""
        is_found = request.finds_keys and self.index.tells_lives
        is_on = settings[INSERTS_TO_LOGS] and self.config.table_type is TableType.MERGE_ON_READ
        return is_on and is_found

    def strategy(self, settings: Settings) -> ConflictStrategy:
        """How the write conflicts with others."""
        return strategy_of(settings, has_bucket_index=self.index.buckets is not None)


_NONE = np.zeros(0, np.int64)


def new_keys(
    plan: WritePlan,
    request: WriteRequest,
    index: IndexChoice,
    config: TableConfig,
    findings: Findings,
) -> NewKeys:
    """The keys that a write took for new, deletes in vain, or has found absent.

    Plain inserts take every row for new without a look, as they promise. What comes to one bucket
    is in one file group, and conflicts there. Where files and a record index may both be asked, a
    key that logs have deleted is known to the one and new to the other: all keys count then.
    """
    places = _NONE
    if request.finds_keys:
        places = np.concatenate([_brought(plan, index, config), _deleted_in_vain(plan)])
    new = NewKeys(plan.rows, places, is_global=index.kind.is_global)
    if findings.absent is None or not len(findings.absent):
        return new
    return new.beside(findings.absent, are_global=findings.absent_everywhere)


def _brought(plan: WritePlan, index: IndexChoice, config: TableConfig) -> Places:
    if index.buckets is not None:
        return _NONE
    inserted: Places = np.concatenate([_NONE, *(group.inserts for group in plan.groups)])
    if config.has_metadata(RECORD_INDEX) and not index.kind.is_record_index:
        inserted = np.arange(len(plan.rows))
    brought: Places = inserted[~plan.rows.is_delete[inserted]]
    return brought


def _deleted_in_vain(plan: WritePlan) -> Places:
    """Deletes of keys that the table lacks: no file group shows that another write brings them."""
    is_vain = plan.rows.is_delete.copy()
    for group in plan.groups:
        is_vain[group.updates] = False
        is_vain[group.departures] = False
    return np.flatnonzero(is_vain)


def read_scopes_of(
    request: WriteRequest, plan: WritePlan, findings: Findings
) -> tuple[ReadScope, ...]:
    """A write that replaces partitions replaces all rows there, as of its commit."""
    asked = () if request.read_scope is None else (request.read_scope,)
    return (*asked, *findings.read_scopes, *_replaced(request, plan))


def _replaced(request: WriteRequest, plan: WritePlan) -> tuple[ReadScope, ...]:
    match request.replacement:
        case Replacement.NOTHING:
            return ()
        case Replacement.TABLE:
            return (ReadScope.everywhere(),)
        case Replacement.TOUCHED_PARTITIONS:
            partitions = plan.rows.partition_paths()
        case _:
            # Those that were chosen by what they hold are among the replaced ones.
            named = request.partitions if isinstance(request.partitions, tuple) else ()
            partitions = (*named, *plan.replaced_ids)
    return (ReadScope(frozenset(partitions).__contains__),)


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
