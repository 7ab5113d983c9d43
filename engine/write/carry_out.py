"""Carrying out: one task makes one data file of a file group, and says what came of it.

A marker announces the file before anything else happens, and the folder is a partition before the
file is in it; so whatever a crash leaves behind is found and undone.
"""

from collections.abc import Iterable

import pyarrow as pa

from lakewarden.engine.formats.payloads.commit import RuntimeStats, WriteStat
from lakewarden.engine.metadata.changes import NewFile
from lakewarden.engine.plans.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableType
from lakewarden.engine.write.base_files import (
    EXTENSION,
    BaseContent,
    StoredFile,
    store_base_file,
)
from lakewarden.engine.write.key_footers import KeyGatherer
from lakewarden.engine.write.log_files import log_deletes, log_records, store_log
from lakewarden.engine.write.meta_columns import with_file_columns, with_own_columns
from lakewarden.engine.write.partition_files import ensure_partition
from lakewarden.engine.write.rewriting import Rewriting
from lakewarden.engine.write.spec import GroupTask, WriteSpec
from lakewarden.engine.write.summaries import summaries_of_footer, summaries_of_rows
from lakewarden.engine.write.written import WrittenFile

__all__ = ["GroupTask", "WriteSpec", "carry_out"]

LOG_VERSION = 1
_NO_KEYS = pa.array([], pa.string())


def carry_out(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    """Make the file that takes in a task's rows: a new base file, a rewritten one, or a log."""
    if _goes_to_log(spec, task):
        return _append(storage, spec, task)
    return _create(storage, spec, task) if task.slice is None else _rewrite(storage, spec, task)


def _goes_to_log(spec: WriteSpec, task: GroupTask) -> bool:
    if spec.table_type is TableType.COPY_ON_WRITE:
        return False
    if spec.logs_take_inserts:
        return True
    return task.slice is not None and not task.is_insert.any()


def _create(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    name = _base_name(spec, task)
    _announce(storage, spec, task, name, MarkerKind.CREATE)
    rows = task.inserts
    keys = KeyGatherer(spec.files.bloom)
    keys.add(rows.keys, are_new=True)
    own = with_own_columns(rows.rows, rows.keys, instant=spec.instant, task_number=task.number)
    content = _content(spec, [with_file_columns(own, task.key.partition, name)])
    stored = store_base_file(storage, _path(task, name), content, keys, spec.files)
    stat = WriteStat(
        file_id=task.key.file_id,
        path=_path(task, name),
        partition_path=task.key.partition,
        num_writes=len(rows),
        num_inserts=len(rows),
        total_write_bytes=stored.size_bytes,
        file_size_in_bytes=stored.size_bytes,
        runtime_stats=RuntimeStats(),
    )
    return _written(spec, task, stat, stored, arrived=rows.keys, left=_NO_KEYS)


def _rewrite(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    assert task.slice is not None
    name = _base_name(spec, task)
    base = task.slice.base_file
    kind = MarkerKind.CREATE if base is None else MarkerKind.MERGE
    _announce(storage, spec, task, name, kind)
    rewriting = Rewriting(storage, spec, task, name)
    content = _content(spec, rewriting.parts())
    stored = store_base_file(storage, _path(task, name), content, rewriting.keys, spec.files)
    tally = rewriting.tally
    stat = WriteStat(
        file_id=task.key.file_id,
        path=_path(task, name),
        partition_path=task.key.partition,
        prev_commit=task.slice.base_instant,
        prev_base_file=base.name if base else None,
        num_writes=stored.footer.num_rows,
        num_update_writes=tally.updates,
        num_deletes=tally.deletes,
        num_inserts=tally.inserts,
        total_write_bytes=stored.size_bytes,
        file_size_in_bytes=stored.size_bytes,
        runtime_stats=RuntimeStats(),
    )
    arrived, left = rewriting.arrived, rewriting.left
    return _written(spec, task, stat, stored, arrived=arrived, left=left)


def _append(storage: Storage, spec: WriteSpec, task: GroupTask) -> WrittenFile:
    name = f".{task.key.file_id}_{spec.instant}.log.{LOG_VERSION}_{_token(spec, task)}"
    _announce(storage, spec, task, name, MarkerKind.CREATE)
    changes, inserts = task.changes, task.inserts
    records = pa.concat_tables([log_records(changes, spec, task), log_records(inserts, spec, task)])
    deletes = log_deletes(changes, spec, task)
    size_bytes = store_log(storage, _path(task, name), records, deletes, spec)
    stat = WriteStat(
        file_id=task.key.file_id,
        path=_path(task, name),
        partition_path=task.key.partition,
        # From version 8 on, a log is a file of its own commit.
        prev_commit=spec.instant,
        num_writes=len(records),
        num_update_writes=len(records) - len(inserts),
        num_deletes=len(deletes),
        num_inserts=len(inserts),
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        log_version=LOG_VERSION,
        log_offset=0,
        base_file="",
        log_files=(name,),
        runtime_stats=RuntimeStats(),
    )
    columns = summaries_of_rows(records, spec.summarised)
    file = NewFile(task.key.partition, name, size_bytes, columns)
    return WrittenFile(task.key, stat, file, inserts.keys, deletes.keys)


def _announce(
    storage: Storage, spec: WriteSpec, task: GroupTask, name: str, kind: MarkerKind
) -> None:
    leave_marker(storage, spec.instant, MarkedFile(task.key.partition, name), kind)
    if task.slice is None:
        ensure_partition(storage, task.key.partition, spec.instant)


def _written(
    spec: WriteSpec,
    task: GroupTask,
    stat: WriteStat,
    stored: StoredFile,
    *,
    arrived: pa.StringArray,
    left: pa.StringArray,
) -> WrittenFile:
    name = str(stat.path).rpartition("/")[2]
    columns = summaries_of_footer(stored.footer, spec.summarised)
    file = NewFile(task.key.partition, name, stored.size_bytes, columns)
    return WrittenFile(task.key, stat, file, arrived, left)


def _content(spec: WriteSpec, parts: Iterable[pa.Table]) -> BaseContent:
    return BaseContent(spec.schema.with_meta(), parts, spec.records_text)


def _base_name(spec: WriteSpec, task: GroupTask) -> str:
    return f"{task.key.file_id}_{_token(spec, task)}_{spec.instant}.{EXTENSION}"


def _token(spec: WriteSpec, task: GroupTask) -> str:
    return spec.write_token(task.number)


def _path(task: GroupTask, name: str) -> str:
    return f"{task.key.partition}/{name}" if task.key.partition else name
