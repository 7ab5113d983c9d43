"""A small table on memory storage: tasks are carried out on it one by one, without a timeline."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import PartitionScheme, TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.files.spec import (
    FileOptions,
    GroupWork,
    WriteSpec,
    WrittenFile,
    group_task,
)
from lakewarden.engine.write.files.write_groups import write_groups
from lakewarden.engine.write.rows.evolve import evolved, with_meta_text

EVENT_TIME = MergeRules(MergeMode.EVENT_TIME, ("ts",))
COMMIT_TIME = MergeRules(MergeMode.COMMIT_TIME)
COLUMNS = pa.schema({"k": pa.string(), "v": pa.string(), "ts": pa.int64()})
Row = dict[str, object]
_NOTHING = (np.zeros(0, np.int64),) * 2


def schema_of(columns: pa.Schema) -> TableSchema:
    empty = TableSchema(pa.schema([]), None)
    return evolved(empty, columns, allow_missing=False, table_name="t")


def write_spec_of(
    columns: pa.Schema = COLUMNS,
    *,
    table_type: TableType = TableType.COPY_ON_WRITE,
    rules: MergeRules = EVENT_TIME,
    files: FileOptions | None = None,
    threads: int = 1,
) -> WriteSpec:
    """What tasks are told; the instant is filled in by whoever writes."""
    schema = schema_of(columns)
    read = ReadSpec(schema.with_meta(), (), None, rules, PartitionScheme(), None, False)
    return WriteSpec(
        instant="",
        attempt=0,
        table_type=table_type,
        schema=schema,
        records_text=with_meta_text(schema),
        rules=rules,
        read=read,
        files=files or FileOptions(),
        summarised=tuple(schema.columns.names),
        threads=threads,
    )


def keyed(
    rows: Iterable[Row] | pa.Table,
    *,
    partition: str = "p",
    deletes: Iterable[int] = (),
    columns: pa.Schema = COLUMNS,
    unconditional: Iterable[int] = (),
) -> KeyedRows:
    """Rows by their column `k`; some of them, by number, delete their key."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), columns)
    count = len(table)
    partitions = pa.array([partition] * count, pa.string()).dictionary_encode()
    is_unconditional = np.isin(np.arange(count), list(unconditional))
    is_delete = np.isin(np.arange(count), list(deletes)) | is_unconditional
    keys = table.column("k").combine_chunks().cast(pa.string())
    return KeyedRows(table, keys, partitions, is_delete, is_unconditional)


class SmallTable:
    """One file group that grows by tasks."""

    def __init__(self, spec: WriteSpec, storage: Storage | None = None) -> None:
        self.storage = storage or fresh_memory_storage()
        self.key = FileGroupId("p", "11111111-2222-3333-4444-555555555555-0")
        self.slice: FileSlice | None = None
        self.spec = spec
        self._writes = 0

    def write(
        self,
        updates: KeyedRows | None = None,
        inserts: KeyedRows | None = None,
        departures: KeyedRows | None = None,
    ) -> WrittenFile:
        """Carry out one task and make its file a part of the slice."""
        nothing = keyed(self.spec.schema.columns.empty_table())
        parts = [part if part is not None else nothing for part in (updates, inserts, departures)]
        ends = np.cumsum([len(part) for part in parts])
        return self._carried_out(np.split(np.arange(ends[-1]), ends[:-1]), _joined(parts))

    def delete_keys(self, *keys: str) -> WrittenFile:
        """Carry out a delete that names only keys."""
        everything = np.ones(len(keys), dtype=bool)
        paths = pa.array(["p"] * len(keys)).dictionary_encode()
        rows = KeyedRows(pa.table({}), pa.array(keys), paths, everything, everything)
        return self._carried_out([np.arange(len(keys)), *_NOTHING], rows)

    def rows(self) -> list[Row]:
        """What a reader sees, with meta columns, sorted by key."""
        assert self.slice is not None
        read = replace(self.spec.read, columns=tuple(self.spec.read.schema.names))
        table = SliceReader(self.storage, read).table(self.slice)
        found: list[Row] = table.sort_by("_hoodie_record_key").to_pylist()
        return found

    def _carried_out(self, places: list[np.ndarray], rows: KeyedRows) -> WrittenFile:
        self._writes += 1
        instant = f"2026010100000{self._writes:04}"
        work = GroupWork(self.key, self.slice, *places)
        spec = replace(self.spec, instant=instant)
        written = write_groups(self.storage, spec, group_task(work, rows, self._writes))
        self.slice = _with_file(self.slice, written, instant)
        return written

    def values(self) -> dict[str, object]:
        """The value of each key."""
        rows = self.rows()
        assert len({row["_hoodie_record_key"] for row in rows}) == len(rows)
        return {str(row["_hoodie_record_key"]): row["v"] for row in rows}


def _joined(parts: list[KeyedRows]) -> KeyedRows:
    partitions = pa.chunked_array([part.partitions for part in parts]).unify_dictionaries()
    return KeyedRows(
        pa.concat_tables([part.rows for part in parts]).combine_chunks(),
        pa.concat_arrays([part.keys for part in parts]),
        partitions.combine_chunks(),
        np.concatenate([part.is_delete for part in parts]),
        np.concatenate([part.is_unconditional for part in parts]),
    )


def _with_file(slice_: FileSlice | None, written: WrittenFile, instant: str) -> FileSlice:
    file = parse_file_name(written.file.name, written.file.size_bytes)
    if isinstance(file, BaseFile):
        return FileSlice(written.key.partition, written.key.file_id, instant, file)
    assert isinstance(file, LogFile)
    if slice_ is None:
        slice_ = FileSlice(written.key.partition, written.key.file_id, instant)
    return replace(slice_, log_files=(*slice_.log_files, file))
