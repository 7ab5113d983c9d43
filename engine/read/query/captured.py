"""Captured changes: what each commit of a window did to each row, with the row before and after.

Logs of change data are read where commits wrote them. What they do not tell is found by comparing
slices, so that tables without change data capture are answered as well. Services move rows and
change none: they do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import DataFile, LogFile
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice, Visibility, file_groups
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata import replace as replacing
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import bind_filter, check_columns
from lakewarden.engine.read.merge.row_changes import (
    CHANGE_SCHEMA,
    ChangeReader,
    ChangeSpec,
    GroupChange,
)
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.changes import (
    ChangesWindow,
    changes_window,
    cleaned,
    moment_of,
    no_commit_times,
    plan_changes,
)
from lakewarden.engine.read.query.plan_query import (
    Query,
    Time,
    parse_time,
    read_spec,
    required_time,
)
from lakewarden.engine.read.query.removed_files import (
    PlacedFile,
    contents_of,
    first_vanished,
    removals,
)
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import LoggingMode, logging_mode
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.timeline import Timeline

# Hudi's words for what the rows of a window are.
LATEST_STATE, CDC = "latest_state", "cdc"
_SERVICES = frozenset(
    {"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA", "BUCKET_RESCALE"}
)


@dataclass(frozen=True, slots=True)
class CapturedScan:
    """The changes of a window, commit after commit, and how they are read."""

    changes: tuple[GroupChange, ...]
    spec: ChangeSpec

    @property
    def output_schema(self) -> pa.Schema:
        return self.spec.output_schema

    def table(self, storage: Storage, executor: Executor) -> pa.Table:
        """All changes, file groups side by side."""
        reader = ChangeReader(storage, self.spec)
        tables = executor.map(reader.table, self.changes)
        return pa.concat_tables([self.output_schema.empty_table(), *tables])

    def batches(self, storage: Storage) -> Iterator[pa.RecordBatch]:
        """All changes; memory holds two slices of one file group."""
        reader = ChangeReader(storage, self.spec)
        for change in self.changes:
            yield from reader.table(change).to_batches()


def plan_window(
    state: Snapshot, since: Time, until: Time | None, query: Query, mode: str
) -> Scan | CapturedScan:
    """The scan of a window (since, until]: the rows it wrote, or what it did to each row."""
    if mode == LATEST_STATE:
        return plan_changes(state, since, until, query)
    if mode != CDC:
        raise InvalidRequest(
            "bad_mode",
            what=f"Lakewarden has no mode {mode!r} of changes.",
            why=f"It can be {LATEST_STATE} or {CDC}.",
            now=f"Leave it out for {LATEST_STATE}.",
        )
    if not state.config.has_meta_fields:
        raise no_commit_times()
    start, end = required_time(since, state.zone), parse_time(until, state.zone)
    spec = ChangeSpec(
        read_spec(state, Query(), None),
        check_columns(query.columns, CHANGE_SCHEMA),
        bind_filter(query.filter, CHANGE_SCHEMA),
    )
    window = changes_window(state, start, end)
    changes = tuple(_Window(state, window, start).changes())
    slices = [one for change in changes for one in (change.before, change.after) if one is not None]
    missed = first_vanished(state, slices)
    if missed is not None:
        raise cleaned(missed.removed.instant, missed.why)
    return CapturedScan(changes, spec)


@dataclass(frozen=True, slots=True)
class _Upto:
    """The completions of a timeline up to a place in the order of a window's writes."""

    timeline: Timeline
    places: Mapping[str, int]
    limit: int

    def completion_time(self, requested: str) -> str | None:
        return self.timeline.completion_time(requested) if self._is_before(requested) else None

    def is_completed(self, requested: str) -> bool:
        return self._is_before(requested) and self.timeline.is_completed(requested)

    def _is_before(self, requested: str) -> bool:
        return self.places.get(requested, -1) < self.limit


@dataclass(frozen=True, slots=True)
class _Write:
    """One write of a window: its place in the order, and what it says of itself."""

    place: int
    instant: str
    stats: tuple[tuple[FileGroupId, WriteStat], ...]
    replaced: tuple[FileGroupId, ...]

    @classmethod
    def of(cls, place: int, instant: Instant, content: bytes, path: str) -> "_Write | None":
        """None for a service, which changes no row."""
        metadata: CommitMetadata = commit.decode(content, path)
        if metadata.compacted or (metadata.operation_type or "") in _SERVICES:
            return None
        stats = tuple(
            (FileGroupId(partition, stat.file_id), stat)
            for partition, some in metadata.partition_to_write_stats.items()
            for stat in some
            if stat.path
        )
        replaced: list[FileGroupId] = []
        if instant.action is Action.REPLACE_COMMIT:
            named = replacing.decode(content, path).partition_to_replace_file_ids
            replaced = [FileGroupId(part, one) for part, ids in named.items() for one in ids]
        return cls(place, instant.requested, stats, tuple(replaced))

    @property
    def keys(self) -> set[FileGroupId]:
        return {*self.replaced, *(key for key, _ in self.stats)}


@dataclass(frozen=True, slots=True)
class _State:
    """What is visible before or after one write."""

    visibility: Visibility
    slices: Mapping[FileGroupId, FileSlice]


class _Window:
    """The file groups that a window has touched, as they were around each of its writes."""

    def __init__(self, state: Snapshot, window: ChangesWindow, since: str) -> None:
        ordered = sorted(window.writes, key=lambda one: (moment_of(state, one), one.requested))
        self._state = state
        self._since = since
        self._places = {one.requested: place for place, one in enumerate(ordered)}
        self._places |= dict.fromkeys(window.later, len(ordered))
        self._visibility = state.visibility() if ordered else None
        self._writes = self._writes_of(ordered)
        self._files = self._found()
        self._removed = self._gone()

    def changes(self) -> Iterator[GroupChange]:
        """What the writes did, oldest first; refused where a clean has removed a file of it."""
        for write in self._writes:
            before, after = self._at(write, 0), self._at(write, 1)
            for key, stat in write.stats:
                yield self._of_stat(write, key, stat, before, after)
            for key in write.replaced:
                self._check(write, key, before)
                yield self._change(write, before.slices.get(key), None)

    def _writes_of(self, ordered: Sequence[Instant]) -> list[_Write]:
        contents = contents_of(self._state.timeline, ordered)
        found = (
            _Write.of(self._places[one.requested], one, content, path)
            for one, content, path in contents
        )
        return sorted(filter(None, found), key=lambda write: write.place)

    def _found(self) -> dict[FileGroupId, list[DataFile]]:
        """The files that the touched groups have, those of change data among them."""
        touched = {key for write in self._writes for key in write.keys}
        if not touched:
            return {}
        source = self._state.source(use_metadata=True)
        partitions = sorted({key.partition for key in touched} & {*source.partitions()})
        found: dict[FileGroupId, list[DataFile]] = {key: [] for key in touched}
        for partition, files in (source.files(partitions) if partitions else {}).items():
            for file in files:
                key = FileGroupId(partition, file.file_id)
                if key in found:
                    found[key].append(file)
        return found

    def _gone(self) -> dict[FileGroupId, list[PlacedFile]]:
        """What cleans have removed of the touched groups since the window began."""
        gone: dict[FileGroupId, list[PlacedFile]] = {}
        if self._writes:
            for removal in removals(self._state.timeline, self._since):
                for removed in removal.files if removal.clean.is_completed else ():
                    if removed.key in self._files:
                        gone.setdefault(removed.key, []).append(removed)
        return gone

    def _at(self, write: _Write, steps: int) -> _State:
        """The touched groups with so many steps of a write done."""
        assert self._visibility is not None
        upto = _Upto(self._state.timeline, self._places, write.place + steps)
        replaced = self._visibility.replaced
        visibility = replace(
            self._visibility,
            completions=upto,
            as_of=self._reach(write, steps),
            replaced={key: at for key, at in replaced.items() if upto.is_completed(at)},
        )
        slices = {}
        for key in write.keys:
            for group in file_groups(key.partition, self._files[key], visibility):
                slices[key] = group.latest_merged()
        return _State(visibility, slices)

    def _reach(self, write: _Write, steps: int) -> str | None:
        """Version 6 knows only by names what is later."""
        if self._state.config.version >= 8:
            return None
        return str(int(write.instant) - 1 + steps).zfill(len(write.instant))

    def _change(
        self,
        write: _Write,
        before: FileSlice | None,
        after: FileSlice | None,
        logged: FileSlice | None = None,
    ) -> GroupChange:
        reaches = (self._reach(write, steps) for steps in (0, 1))
        return GroupChange(write.instant, before, after, logged, *reaches)

    def _of_stat(
        self, write: _Write, key: FileGroupId, stat: WriteStat, before: _State, after: _State
    ) -> GroupChange:
        logged = self._logged(key, stat)
        mode = logging_mode(self._state.config.properties)
        if logged is None or mode is LoggingMode.OP_KEY_ONLY:
            self._check(write, key, before)
        if logged is None or mode is not LoggingMode.DATA_BEFORE_AFTER:
            self._check(write, key, after)
            self._check_own(write, key, stat, after)
        return self._change(write, before.slices.get(key), after.slices.get(key), logged)

    def _logged(self, key: FileGroupId, stat: WriteStat) -> FileSlice | None:
        """The logs of change data that a write names, if all of them are there."""
        names = {path.rpartition("/")[2] for path in stat.cdc_stats or ()}
        logs = [
            file
            for file in self._files[key]
            if isinstance(file, LogFile) and file.is_cdc and file.name in names
        ]
        if not names or len(logs) < len(names):
            return None
        ordered = sorted(logs, key=lambda one: one.version)
        return FileSlice(key.partition, key.file_id, logs[0].instant, log_files=tuple(ordered))

    def _check(self, write: _Write, key: FileGroupId, at: _State) -> None:
        """Refuse a change of which a clean has removed a file that nothing superseded by then."""
        slice_ = at.slices.get(key)
        since = "" if slice_ is None or slice_.base_file is None else slice_.base_instant
        for removed in self._removed.get(key, ()):
            if removed.instant >= since and at.visibility.is_visible(removed.instant):
                why = f"A clean removed {removed.path}, which a row's image is in."
                raise cleaned(write.instant, why)

    def _check_own(self, write: _Write, key: FileGroupId, stat: WriteStat, at: _State) -> None:
        """Refuse a change whose own file is not there, whatever has removed it."""
        slice_ = at.slices.get(key)
        name = (stat.path or "").rpartition("/")[2]
        if slice_ is None or name not in {file.name for file in slice_.files}:
            raise cleaned(write.instant, f"{stat.path}, which it wrote, is not there any more.")
