"""Writing file groups: one task makes one data file, and returns its figures.

A marker announces the file before anything else happens, and the folder is a partition before the
file is in it; so whatever a crash leaves behind is found and undone.

Partition metadata: the file by which Java knows that a folder is a partition of the table.
"""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.metadata.entries.changes import NewFile, ValueChange
from lakewarden.engine.metadata.entries.row_indexes import value_changes
from lakewarden.engine.metadata.entries.summaries import summaries_of_rows
from lakewarden.engine.read.merge.row_changes import RowChanges
from lakewarden.engine.storage.port import Storage, Unknown
from lakewarden.engine.table.config import TableType
from lakewarden.engine.transaction.state.markers import (
    MarkedFile,
    MarkerKind,
    MarkerType,
    leave_marker,
)
from lakewarden.engine.write.files.base_files import (
    Rewriting,
    file_stat,
    new_base_file,
    write_base_file,
)
from lakewarden.engine.write.files.file_content import KeyGatherer, with_log_content
from lakewarden.engine.write.files.log_files import (
    LOG_VERSION,
    KeyChanges,
    LogDeletes,
    key_changes,
    log_deletes,
    log_name,
    log_records,
    new_change_log,
    store_changes,
    store_log,
)
from lakewarden.engine.write.files.spec import (
    GroupTask,
    WriteSpec,
    WrittenFile,
    with_file_columns,
    with_own_columns,
)

_COMMENT = "partition metadata"
# Where tables keep it as a file of their base format, its footer says the same.
BASE_FORMAT_METADATA = f"{PARTITION_METADATA}.parquet"


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Make a folder a partition before its first file comes; losing to another writer is fine."""
    path = f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA
    outcome = storage.create_exclusive(path, format_properties(_said(partition, instant), _COMMENT))
    if isinstance(outcome, Unknown) and storage.stat(path) is None:
        raise Unavailable(
            "partition_not_made",
            what=f"It is not known whether {path} was created.",
            why=f"{outcome.cause}.",
            now="Try again: readers do not see the partition without this file.",
            path=path,
        )


def write_in_base_format(storage: Storage, partition: str, instant: str) -> None:
    """Make a folder a partition by a Parquet file, as Java does: without rows, by its footer."""
    rows = pa.table({"dummyint": pa.array([], pa.int64())})
    path = f"{partition}/{BASE_FORMAT_METADATA}" if partition else BASE_FORMAT_METADATA
    content = pa.BufferOutputStream()
    with pq.ParquetWriter(content, rows.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(_said(partition, instant))
    storage.put(path, content.getvalue().to_pybytes())


def _said(partition: str, instant: str) -> dict[str, str]:
    depth = len(partition.split("/")) if partition else 0
    return {"commitTime": instant, "partitionDepth": str(depth)}


__all__ = ["GroupTask", "WriteSpec", "planned_files", "write_groups"]

_NO_KEYS = pa.array([], pa.string())


def write_groups(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    """Step `work.file`: a new base file, a rewritten one, or a log takes in a task's rows."""
    has_inserts = bool(task.is_insert.any())
    planned = planned_files(spec, task.key, task.slice, task.number, has_inserts=has_inserts)
    work = _Work(storage, spec, task, planned[0][0])
    work.announce(planned)
    if goes_to_log(spec, has_slice=task.slice is not None, has_inserts=has_inserts):
        return work.append()
    return work.create() if task.slice is None else work.rewritten()


def planned_files(
    spec: WriteSpec,
    key: FileGroupId,
    slice_: FileSlice | None,
    number: int,
    *,
    has_inserts: bool,
) -> tuple[tuple[MarkedFile, MarkerKind], ...]:
    """The files that a task with some number makes for a file group, the one with its rows first,
    and what their markers say."""
    if goes_to_log(spec, has_slice=slice_ is not None, has_inserts=has_inserts):
        return ((MarkedFile(key.partition, log_name(key, spec, number)), MarkerKind.CREATE),)
    is_new = slice_ is None or slice_.base_file is None
    kind = MarkerKind.CREATE if is_new else MarkerKind.MERGE
    base = new_base_file(key, spec, number), kind
    if slice_ is None or spec.captures is None:
        return (base,)
    return base, (new_change_log(key, spec, number), MarkerKind.CREATE)


def goes_to_log(spec: WriteSpec, *, has_slice: bool, has_inserts: bool) -> bool:
    """Whether a file group takes its rows in by a log; else by a new base file."""
    if spec.table_type is TableType.COPY_ON_WRITE or spec.rewrites_bases:
        return False
    if spec.logs_take_inserts:
        return has_slice or not spec.begins_with_bases
    return has_slice and not has_inserts


class _Work:
    """One task under way."""

    def __init__(
        self, storage: Storage, spec: WriteSpec, task: GroupTask, target: MarkedFile
    ) -> None:
        self._storage = storage
        self._spec = spec
        self._task = task
        self._target = target

    def announce(self, planned: Iterable[tuple[MarkedFile, MarkerKind]]) -> None:
        """Before anything else; where files are listed, that was done before the first of them."""
        if MarkerType.DIRECT in self._spec.markers:
            for target, kind in planned:
                leave_marker(self._storage, self._spec.instant, target, kind)
        if self._task.slice is None:
            ensure_partition(self._storage, self._target.partition, self._spec.instant)

    def create(self) -> WrittenFile:
        target = self._target
        rows = self._task.inserts
        keys = KeyGatherer(self._spec.key_footers)
        keys.add(rows.keys, are_new=True)
        own = with_own_columns(
            rows.rows, rows.keys, instant=self._spec.instant, task_number=self._task.number
        )
        parts = [with_file_columns(own, target.partition, target.name)]
        file, stat = self._store(target, parts, keys)
        stat = replace(stat, num_inserts=len(rows))
        valued = self._values_of(own)
        return WrittenFile(self._task.key, stat, file, rows.keys, _NO_KEYS, valued)

    def rewritten(self) -> WrittenFile:
        target, slice_ = self._target, self._task.slice
        assert slice_ is not None
        base = slice_.base_file
        rewriting = Rewriting(self._storage, self._spec, self._task, target.name)
        file, stat = self._store(target, rewriting.parts(), rewriting.keys)
        tally = rewriting.tally
        stat = replace(
            stat,
            prev_commit=slice_.base_instant,
            prev_base_file=base.name if base else None,
            num_update_writes=tally.updates,
            num_deletes=tally.deletes,
            num_inserts=tally.inserts,
        )
        captured = self._captured(rewriting.captured())
        if captured is not None:
            stat = replace(stat, cdc_stats={captured.path: captured.size_bytes})
        arrived, left = rewriting.arrived, rewriting.left
        return WrittenFile(
            self._task.key, stat, file, arrived, left, rewriting.valued, captured=captured
        )

    def _above(self, stat: WriteStat) -> WriteStat:
        """What a log says of the files below it.

        From version 8 on it is a file of its own commit. Where changes are captured Java takes the
        rows before it from the files that it names.
        """
        slice_, name = self._task.slice, self._target.name
        if self._spec.captures is None or slice_ is None or slice_.base_file is None:
            return replace(stat, prev_commit=self._spec.instant, base_file="", log_files=(name,))
        older = tuple(log.name for log in slice_.log_files)
        return replace(
            stat,
            prev_commit=slice_.base_instant,
            base_file=slice_.base_file.name,
            log_files=(*older, name),
        )

    def _captured(self, changes: RowChanges | None) -> NewFile | None:
        """The log of change data beside a new base file."""
        spec, task = self._spec, self._task
        if changes is None or spec.captures is None:
            return None
        target = new_change_log(task.key, spec, task.number)
        return store_changes(self._storage, target, changes, spec, spec.captures)

    def append(self) -> WrittenFile:
        spec, task, target = self._spec, self._task, self._target
        changes, inserts = task.changes, task.inserts
        parts = [log_records(rows, spec, task) for rows in (changes, inserts)]
        records = pa.concat_tables(parts)
        deletes = log_deletes(changes, spec, task)
        size_bytes = store_log(self._storage, target.path, records, deletes, spec)
        stat = replace(
            file_stat(target, task.key.file_id, size_bytes, num_writes=len(records)),
            num_update_writes=len(records) - len(inserts),
            num_deletes=len(deletes.after),
            num_inserts=len(inserts),
            log_version=LOG_VERSION,
            log_offset=0,
        )
        stat = self._above(stat)
        columns = summaries_of_rows(records, spec.summarised)
        file = NewFile(target.partition, target.name, size_bytes, columns)
        file = with_log_content(file, records, spec.indexes)
        known = self._key_changes(changes.keys, records, deletes)
        arrived = pa.concat_arrays([known.arrived, inserts.keys])
        valued = known.valued + self._values_of(parts[1])
        return WrittenFile(task.key, stat, file, arrived, known.left, valued)

    def _key_changes(
        self, keys: pa.StringArray, records: pa.Table, deletes: LogDeletes
    ) -> KeyChanges:
        """What a log did to keys that the group knew."""
        slice_ = self._task.slice
        if not len(keys):
            return KeyChanges(_NO_KEYS, _NO_KEYS)
        # Matches by bucket say nothing of whether the group has a key. Those by files do, but not
        # whether a log has deleted it.
        are_known = not self._spec.logs_take_inserts or self._spec.index_tells_lives
        are_living = self._spec.index_tells_lives or slice_ is None or not slice_.log_files
        is_plain = slice_ is None or (are_known and are_living)
        is_told = not self._spec.tracks_keys or (
            is_plain and bool(deletes.after.is_unconditional.all())
        )
        if (slice_ is None or not self._spec.indexes.secondary) and is_told:
            return KeyChanges(_NO_KEYS, deletes.after.keys)
        assert slice_ is not None
        return key_changes(self._storage, self._spec, slice_, keys, records, deletes)

    def _values_of(self, rows: pa.Table) -> tuple[ValueChange, ...]:
        """What secondary indexes have to learn of rows with new keys."""
        return value_changes(self._spec.indexes.secondary, None, rows)

    def _store(
        self, target: MarkedFile, parts: Iterable[pa.Table], keys: KeyGatherer
    ) -> tuple[NewFile, WriteStat]:
        file_id = self._task.key.file_id
        return write_base_file(self._storage, self._spec, target, file_id, parts, keys)
