"""Index trust: whether a read may believe that an index names every row.

An index by file that lacks an entry costs a read of that file, no more. An index by key that lacks
an entry costs rows: Java lists an index before it has caught up, forgets writers beside a build,
and takes rows back without telling an index that is younger than they are. So an index by key is
believed only where none of this can have happened; every doubt is a sentence that `explain` shows.
"""

from collections.abc import Iterator

from lakewarden.engine.formats.instant_metadata import commit, indexing, rollback
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.metadata.writing.builds import REFRESH_KEY
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, Instant, State
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER

# What of files is not known there costs a read of them, no more.
_BY_FILE = (COLUMN_STATS, BLOOM_FILTERS, EXPRESSION_INDEX_PREFIX)
_BY_KEY = (RECORD_INDEX, SECONDARY_INDEX_PREFIX)
_UNDOINGS = (Action.ROLLBACK, Action.RESTORE)


class IndexTrust:
    """The doubts about the indexes of one snapshot; each is looked into once."""

    def __init__(self, state: Snapshot) -> None:
        self._state = state
        self._doubts: dict[str, str | None] = {}
        self._own: frozenset[str] | None = None
        self._plans: dict[str, tuple[indexing.IndexPartition, ...]] = {}

    def doubt(self, partition: str) -> str | None:
        """Why an index by key is not believed; None if it is."""
        if partition not in self._doubts:
            found = (check for check in self._checks(partition) if check is not None)
            self._doubts[partition] = next(found, None)
        return self._doubts[partition]

    def is_by_file(self, partition: str) -> bool:
        """Whether an index that lacks an entry costs a read, and no row."""
        return partition.startswith(_BY_FILE)

    def gap(self, partition: str) -> str | None:
        """What an index by file is known to lack; it is asked all the same."""
        found = (check for check in self._gaps(partition) if check is not None)
        return next(found, None)

    def unready(self, partition: str) -> str | None:
        """Why an index cannot be asked at all, whatever it would say."""
        config = self._state.config
        if partition in config.metadata_partitions_inflight:
            return "it is being built"
        if partition not in config.metadata_partitions:
            return "it is not built"
        return None

    def doubt_of_partitions(self) -> str | None:
        """Why the statistics of partitions are not believed: other engines make them too narrow."""
        doubt = self.doubt(PARTITION_STATS)
        if doubt is not None:
            return doubt
        write = self.foreign_write()
        if write is not None:
            return f"another engine made the write {write}, and may have left rows out"
        if self._state.history.versions:
            return "columns were renamed since it was built"
        files = self._state.storage.list(self._state.layout.history_folder).files
        is_archived = any(one.name.endswith(".parquet") for one in files)
        return "archived writes may be those of another engine" if is_archived else None

    def foreign_write(self, since: str = "") -> str | None:
        """A write of the active timeline, completed after a moment, that another engine made."""
        own = self.own_instants()
        writes = self._state.timeline.active.completed()
        later = (one.requested for one in writes if (one.completed or "") > since)
        return next((one for one in later if one not in own), None)

    def unheard_write(self) -> str | None:
        """A write without a deltacommit in the metadata table: its writer did not know of it."""
        write = self._state.metadata.unheard_write
        return f"the write {write} has not updated the metadata table" if write else None

    def own_instants(self) -> frozenset[str]:
        """The instants that this engine began: those with a ledger."""
        if self._own is None:
            folders = self._state.storage.list(LEDGER_FOLDER).folders
            self._own = frozenset(one.rstrip("/").rpartition("/")[2] for one in folders)
        return self._own

    def _gaps(self, partition: str) -> Iterator[str | None]:
        yield self.unready(partition)
        yield self._unfinished_build(partition)
        yield self.unheard_write()
        yield self._lost_base(partition)
        yield self._beside_build(partition)

    def _checks(self, partition: str) -> Iterator[str | None]:
        yield from self._gaps(partition)
        if partition.startswith(_BY_KEY) and not self._state.config.has_meta_fields:
            yield "the table stores no keys, and writers may have lost some"
        yield self._untold_undoing(partition)
        if partition.startswith(SECONDARY_INDEX_PREFIX):
            needed = self.doubt(RECORD_INDEX)
            yield f"it needs the record index, and {needed}" if needed else None
            yield self._several(partition)

    def _unfinished_build(self, partition: str) -> str | None:
        """Java lists an index while it still catches up, and for ever where it dies then."""
        done = max((one.requested for one in self._builds(partition, is_done=True)), default="")
        for build in self._builds(partition, is_done=False):
            is_new = build.requested > done and not self._is_refresh(build)
            if build.state is State.INFLIGHT and is_new:
                return f"its build {build.requested} has not completed"
        return None

    def _lost_base(self, partition: str) -> str | None:
        """A build whose own files were rolled back leaves an index without what was there."""
        for build in self._newest_build(partition):
            if build.requested in self._rolled_back_there():
                return f"its build {build.requested} was rolled back in the metadata table"
            upto = self._upto(build, partition)
            slices = self._state.metadata.slices(partition)
            if upto and not any(slice_.base_file for slice_ in slices):
                return f"the files of its build {build.requested} are gone"
        return None

    def _beside_build(self, partition: str) -> str | None:
        """A write beside a build of Java's: its keys are in the index only if its writer chose."""
        for build in self._newest_build(partition):
            if build.requested in self.own_instants():
                continue
            upto = self._upto(build, partition) or ""
            for write in self._writes_beside(upto, build):
                if not self._has_told(write, partition):
                    return f"the write {write.requested} ran beside its build {build.requested}"
        return None

    def _writes_beside(self, upto: str, build: Instant) -> Iterator[Instant]:
        timeline, end = self._state.timeline, build.completed or ""
        first = timeline.first_active
        known = {one.key: one for one in timeline.active.completed()}
        if upto and first is not None and upto < first:
            known |= {one.key: one for one in timeline.archive.instants(upto, end)}
        for one in known.values():
            is_beside = one.requested > upto or (one.completed or "") > build.requested
            if one.action.is_write and is_beside and one.requested < end:
                yield one

    def _has_told(self, write: Instant, partition: str) -> bool:
        own = self._state.metadata.timeline.active
        for done in own.completed((Action.DELTA_COMMIT,)):
            if done.requested == write.requested:
                stats = commit.decode(own.read(done), own.path(done)).partition_to_write_stats
                return bool(stats.get(partition))
        return False

    def _untold_undoing(self, partition: str) -> str | None:
        """A rollback or restore of Java's that took back what an index was built on."""
        builds = self._newest_build(partition)
        upto = max((self._upto(one, partition) or "" for one in builds), default="")
        built = max((one.requested for one in builds), default="")
        active = self._state.timeline.active
        for undoing in active.completed(_UNDOINGS):
            if undoing.requested in self.own_instants() or (undoing.completed or "") <= built:
                continue
            if undoing.action is Action.RESTORE:
                return f"the restore {undoing.requested} has not updated it"
            if any(one <= upto for one in self._undone(undoing)):
                return f"the rollback {undoing.requested} has not updated it"
        return None

    def _undone(self, undoing: Instant) -> tuple[str, ...]:
        active = self._state.timeline.active
        metadata = rollback.decode(active.read(undoing), active.path(undoing))
        return metadata.commits_rollback

    def _several(self, partition: str) -> str | None:
        """Java keeps only one secondary index true where there are several."""
        indexes = [
            one
            for one in self._state.config.metadata_partitions
            if one.startswith(SECONDARY_INDEX_PREFIX)
        ]
        builds = self._newest_build(partition)
        own = (one.requested for one in builds if one.requested in self.own_instants())
        if len(indexes) < 2 or (write := self.foreign_write(max(own, default=""))) is None:
            return None
        return f"Java, which made the write {write}, updates only one of several secondary indexes"

    def _rolled_back_there(self) -> frozenset[str]:
        own = self._state.metadata.timeline.active
        return frozenset(
            instant
            for one in own.completed((Action.ROLLBACK,))
            for instant in rollback.decode(own.read(one), own.path(one)).commits_rollback
        )

    def _builds(self, partition: str, *, is_done: bool) -> tuple[Instant, ...]:
        return tuple(
            one
            for one in self._state.timeline.active.instants
            if one.action is Action.INDEXING
            and one.is_completed is is_done
            and any(info.metadata_partition_path == partition for info in self._planned(one))
        )

    def _is_refresh(self, build: Instant) -> bool:
        """Whether a build only replaces what the index has, which is in use until then."""
        return any(REFRESH_KEY in info.extra_metadata for info in self._planned(build))

    def _newest_build(self, partition: str) -> tuple[Instant, ...]:
        """The last completed build of an index; what is said of those before it is over."""
        return self._builds(partition, is_done=True)[-1:]

    def _upto(self, build: Instant, partition: str) -> str | None:
        for info in self._planned(build):
            if info.metadata_partition_path == partition:
                return info.index_upto_instant
        return None

    def _planned(self, build: Instant) -> tuple[indexing.IndexPartition, ...]:
        if build.requested not in self._plans:
            self._plans[build.requested] = self._read_plan(build)
        return self._plans[build.requested]

    def _read_plan(self, build: Instant) -> tuple[indexing.IndexPartition, ...]:
        files = self._state.timeline.active.files_of(build)
        if files is None or files.requested is None:
            return ()
        path = files.requested.entry.path
        try:
            content = self._state.storage.read_if_present(path)
            return indexing.decode_plan(content, path).index_partition_infos if content else ()
        except CorruptTable:
            # A crash cut it short, so that nothing was built by it.
            return ()
