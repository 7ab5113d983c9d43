"""Files of tables that Java wrote, rewritten: the same rows in the same types, and ours besides."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.bloom import DEFAULT_ENTRIES
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.write.files.spec import GroupWork, WriteSpec, group_task
from lakewarden.engine.write.files.write_groups import write_groups
from lakewarden.engine.write.settings import write_spec
from tests.canonical import canonical_rows

INSTANT = "29990101000000000"
NOTHING = np.zeros(0, np.int64)
TABLES = [
    "cow_all_types",
    "cow_partition_url_encoded",
    "cow_timestamp_ntz",
    "mor_all_types",
    "mor_deletes",
    "mor_event_time_two_fields",
]
Opened = tuple[Snapshot, WriteSpec, list[FileSlice]]

# With it, a file of few keys has a filter as large as Java's.
AS_JAVA = Settings.of(arguments={"hoodie.index.bloom.num_entries": DEFAULT_ENTRIES})


@pytest.fixture
def opened(golden_copy: Callable[[str], Path]) -> Callable[[str], Opened]:
    """A golden table, how to write to it, and its latest slices with a base file."""

    def open_copy(name: str) -> Opened:
        state = load_snapshot(open_storage(Location(str(golden_copy(name)))))
        spec = write_spec(state, state.schema(), AS_JAVA, instant=INSTANT)
        groups = state.file_groups(state.visibility(), None, use_metadata=False)
        slices = [group.latest_merged() for group in groups]
        return state, spec, [slice_ for slice_ in slices if slice_.base_file]

    return open_copy


def rows_of(state: Snapshot, spec: WriteSpec, slice_: FileSlice) -> pa.Table:
    read = replace(spec.read, columns=tuple(spec.read.schema.names))
    return SliceReader(state.storage, read).table(slice_).sort_by("_hoodie_record_key")


def keyed(rows: pa.Table, spec: WriteSpec, partition: str) -> KeyedRows:
    no = np.zeros(len(rows), dtype=bool)
    return KeyedRows(
        rows.select(spec.schema.columns.names).combine_chunks(),
        rows.column("_hoodie_record_key").combine_chunks(),
        pa.array([partition] * len(rows), pa.string()).dictionary_encode(),
        no,
        no,
    )


@pytest.mark.parametrize("name", TABLES)
def test_rows_that_do_not_change_survive(opened: Callable[[str], Opened], name: str) -> None:
    state, spec, slices = opened(name)
    for slice_ in slices:
        before = rows_of(state, spec, slice_)
        touched = keyed(before.slice(0, 1), spec, slice_.partition)
        work = GroupWork(slice_.key, slice_, np.arange(len(touched)), NOTHING, NOTHING)
        task = group_task(work, touched, 3)
        # Groups of merge-on-read tables are rewritten, too, when they take in new rows.
        rewriting = replace(spec, table_type=TableType.COPY_ON_WRITE)
        written = write_groups(state.storage, rewriting, task)
        file = pq.ParquetFile(io.BytesIO(state.storage.read(str(written.stat.path))))
        after = file.read().sort_by("_hoodie_record_key")
        assert set(after.column("_hoodie_file_name").to_pylist()) <= {written.file.name}
        own = spec.schema.columns.names
        assert canonical_rows(after.select(own)) == canonical_rows(before.select(own))
        times = after.column("_hoodie_commit_time").to_pylist()
        assert times[len(touched) :] == before.column("_hoodie_commit_time").to_pylist()[1:]
        assert times[: len(touched)] == [INSTANT] * len(touched)


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_stored_as_java_stores_them(opened: Callable[[str], Opened], name: str) -> None:
    state, spec, slices = opened(name)
    slice_ = slices[0]
    assert slice_.base_file is not None
    java = pq.ParquetFile(io.BytesIO(state.storage.read(slice_.path(slice_.base_file))))
    rows = keyed(rows_of(state, spec, slice_), spec, slice_.partition)
    work = GroupWork(slice_.key, None, NOTHING, np.arange(len(rows)), NOTHING)
    written = write_groups(state.storage, spec, group_task(work, rows, 3))
    ours = pq.ParquetFile(io.BytesIO(state.storage.read(str(written.stat.path))))
    assert leaves(ours) == leaves(java)
    assert set(ours.metadata.metadata) == set(java.metadata.metadata)
    mine, theirs = key_footer(ours.metadata), key_footer(java.metadata)
    if not slice_.log_files:
        assert (mine.min_key, mine.max_key) == (theirs.min_key, theirs.max_key)
        assert len(mine.bloom_text or "") == len(theirs.bloom_text or "")


def leaves(file: pq.ParquetFile) -> dict[str, tuple[object, ...]]:
    """The stored types by path; Java's old layout of lists has one level less."""
    columns = [file.schema.column(at) for at in range(len(file.schema.names))]
    return {
        column.path.replace(".list.element", "[]").replace(".array", "[]"): (
            column.physical_type,
            str(column.logical_type),
            column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else None,
        )
        for column in columns
    }
