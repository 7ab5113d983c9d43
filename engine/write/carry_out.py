"""Carrying out: one task makes one data file of a file group, and says what came of it.

A marker announces the file before anything else happens, and the folder is a partition before the
file is in it; so whatever a crash leaves behind is found and undone.
"""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.payloads.commit import RuntimeStats, WriteStat
from lakewarden.engine.metadata.changes import NewFile
from lakewarden.engine.metadata.summaries import summaries_of_rows
from lakewarden.engine.plans.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableType
from lakewarden.engine.view.file_names import LogFile, parse_file_name
from lakewarden.engine.write.base_files import EXTENSION, BaseContent, store_base_file
from lakewarden.engine.write.file_summaries import NanWatch, base_file_summaries
from lakewarden.engine.write.key_changes import KeyChanges, key_changes
from lakewarden.engine.write.key_footers import KeyGatherer
from lakewarden.engine.write.log_files import log_deletes, log_records, store_log
from lakewarden.engine.write.meta_columns import with_file_columns, with_own_columns
from lakewarden.engine.write.partition_files import ensure_partition
from lakewarden.engine.write.rewriting import Rewriting
from lakewarden.engine.write.spec import GroupTask, WriteSpec
from lakewarden.engine.write.written import WrittenFile

__all__ = ["GroupTask", "WriteSpec", "carry_out"]

LOG_VERSION = 1
_NO_KEYS = pa.array([], pa.string())


def carry_out(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    """Make the file that takes in a task's rows: a new base file, a rewritten one, or a log."""
    work = _Work(storage, spec, task)
    if _goes_to_log(spec, task):
        return work.appended()
    return work.created() if task.slice is None else work.rewritten()


def _goes_to_log(spec: WriteSpec, task: GroupTask) -> bool:
    if spec.table_type is TableType.COPY_ON_WRITE:
        return False
    if spec.logs_take_inserts:
        return True
    return task.slice is not None and not task.is_insert.any()


class _Work:
    """One task under way."""

    def __init__(self, storage: Storage, spec: WriteSpec, task: GroupTask) -> None:
        self._storage = storage
        self._spec = spec
        self._task = task

    def created(self) -> WrittenFile:
        name = self._base_name()
        self._announce(name, MarkerKind.CREATE)
        rows, partition = self._task.inserts, self._task.key.partition
        keys = KeyGatherer(self._spec.files.bloom)
        keys.add(rows.keys, are_new=True)
        own = with_own_columns(
            rows.rows, rows.keys, instant=self._spec.instant, task_number=self._task.number
        )
        file, stat = self._store(name, [with_file_columns(own, partition, name)], keys)
        stat = replace(stat, num_inserts=len(rows))
        return WrittenFile(self._task.key, stat, file, rows.keys, _NO_KEYS)

    def rewritten(self) -> WrittenFile:
        name, slice_ = self._base_name(), self._task.slice
        assert slice_ is not None
        base = slice_.base_file
        self._announce(name, MarkerKind.CREATE if base is None else MarkerKind.MERGE)
        rewriting = Rewriting(self._storage, self._spec, self._task, name)
        file, stat = self._store(name, rewriting.parts(), rewriting.keys)
        tally = rewriting.tally
        stat = replace(
            stat,
            prev_commit=slice_.base_instant,
            prev_base_file=base.name if base else None,
            num_update_writes=tally.updates,
            num_deletes=tally.deletes,
            num_inserts=tally.inserts,
        )
        return WrittenFile(self._task.key, stat, file, rewriting.arrived, rewriting.left)

    def appended(self) -> WrittenFile:
        spec, task = self._spec, self._task
        token = spec.write_token(task.number)
        name = f".{task.key.file_id}_{spec.instant}.log.{LOG_VERSION}_{token}"
        self._announce(name, MarkerKind.CREATE)
        changes, inserts = task.changes, task.inserts
        parts = [log_records(rows, spec, task) for rows in (changes, inserts)]
        records = pa.concat_tables(parts)
        deletes = log_deletes(changes, spec, task)
        size_bytes = store_log(self._storage, self._path(name), records, deletes, spec)
        stat = replace(
            self._stat(name, size_bytes, num_writes=len(records)),
            # From version 8 on, a log is a file of its own commit.
            prev_commit=spec.instant,
            num_update_writes=len(records) - len(inserts),
            num_deletes=len(deletes),
            num_inserts=len(inserts),
            log_version=LOG_VERSION,
            log_offset=0,
            base_file="",
            log_files=(name,),
        )
        columns = summaries_of_rows(records, spec.summarised)
        file = NewFile(task.key.partition, name, size_bytes, columns)
        known = self._key_changes(file, changes.keys, deletes)
        arrived = pa.concat_arrays([known.arrived, inserts.keys])
        return WrittenFile(task.key, stat, file, arrived, known.left)

    def _key_changes(self, file: NewFile, keys: pa.StringArray, deletes: Deletes) -> KeyChanges:
        """What a log did to keys that the group knew."""
        slice_ = self._task.slice
        is_plain = slice_ is None or not slice_.log_files
        if not self._spec.tracks_keys or (is_plain and deletes.is_unconditional.all()):
            return KeyChanges(_NO_KEYS, deletes.keys)
        log = parse_file_name(file.name, file.size_bytes)
        assert slice_ is not None
        assert isinstance(log, LogFile)
        return key_changes(self._storage, self._spec, slice_, log, keys)

    def _announce(self, name: str, kind: MarkerKind) -> None:
        partition, instant = self._task.key.partition, self._spec.instant
        leave_marker(self._storage, instant, MarkedFile(partition, name), kind)
        if self._task.slice is None:
            ensure_partition(self._storage, partition, instant)

    def _store(
        self, name: str, parts: Iterable[pa.Table], keys: KeyGatherer
    ) -> tuple[NewFile, WriteStat]:
        """Write a base file; what came of it, as far as the file itself tells."""
        spec, path, watch = self._spec, self._path(name), NanWatch()
        content = BaseContent(spec.schema.with_meta(), watch.over(parts), spec.records_text)
        stored = store_base_file(self._storage, path, content, keys, spec.files)
        columns = base_file_summaries(
            self._storage, path, stored.footer, spec.summarised, watch.columns
        )
        file = NewFile(self._task.key.partition, name, stored.size_bytes, columns)
        return file, self._stat(name, stored.size_bytes, num_writes=stored.footer.num_rows)

    def _stat(self, name: str, size_bytes: int, *, num_writes: int) -> WriteStat:
        return WriteStat(
            file_id=self._task.key.file_id,
            path=self._path(name),
            partition_path=self._task.key.partition,
            num_writes=num_writes,
            total_write_bytes=size_bytes,
            file_size_in_bytes=size_bytes,
            runtime_stats=RuntimeStats(),
        )

    def _base_name(self) -> str:
        token = self._spec.write_token(self._task.number)
        return f"{self._task.key.file_id}_{token}_{self._spec.instant}.{EXTENSION}"

    def _path(self, name: str) -> str:
        partition = self._task.key.partition
        return f"{partition}/{name}" if partition else name
