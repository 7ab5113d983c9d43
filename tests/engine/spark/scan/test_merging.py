"""Tasks for workers: how slices are dealt out, and what a worker makes of a task."""

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.file_names import BaseFile, parse_file_name
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.spark.scan import frames
from lakewarden.engine.spark.scan.frames import MergeTasks, balanced, merge_tasks
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.canonical import canonical_rows, difference
from tests.golden_tables import GoldenTable

PARTIAL = "mor_partial_updates"


def slice_of(number: int, size_bytes: int) -> FileSlice:
    file = parse_file_name(f"file{number}-0_0-1-1_20261118101500123.parquet", size_bytes)
    assert isinstance(file, BaseFile)
    return FileSlice("", file.file_id, file.instant, file)


def sizes(parts: list[tuple[FileSlice, ...]]) -> list[int]:
    return [sum(slice_.size_bytes for slice_ in part) for part in parts]


def numbers(*values: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"id": pa.array(values, pa.int64())})


def tasks_of(table: Table, path: str, cores: int = 1) -> MergeTasks:
    scan = table.explain().scan
    location = open_storage(Location(path)).location
    return merge_tasks(location, scan.spec, scan.slices, cores)


def test_tasks_are_of_about_the_same_size() -> None:
    slices = [slice_of(number, size) for number, size in enumerate((70, 10, 20, 30, 40, 10))]
    assert sorted(sizes(balanced(slices, 3))) == [50, 60, 70]


def test_every_slice_is_in_one_task() -> None:
    slices = [slice_of(number, number % 7) for number in range(100)]
    dealt = [slice_ for part in balanced(slices, 8) for slice_ in part]
    assert sorted(dealt, key=lambda slice_: slice_.key) == sorted(
        slices, key=lambda slice_: slice_.key
    )


def test_large_tables_get_more_tasks_than_cores(golden: GoldenTable) -> None:
    spec = Table(str(golden(PARTIAL))).explain().scan.spec
    slices = [slice_of(number, frames.TASK_BYTES) for number in range(50)]
    tasks = merge_tasks(Location("/lake"), spec, slices, cores=2)
    assert len(tasks.packed) == 50


def test_small_tables_get_no_more_tasks_than_slices(golden: GoldenTable) -> None:
    path = str(golden("mor_bucket_simple"))
    tasks = tasks_of(Table(path), path, cores=100)
    assert len(tasks.packed) == len(Table(path).file_slices())


@pytest.mark.parametrize("name", [PARTIAL, "mor_all_types", "mor_nested_partitions"])
def test_a_task_reads_its_rows_wherever_it_arrives(name: str, golden: GoldenTable) -> None:
    path = str(golden(name))
    arrived = pickle.loads(pickle.dumps(tasks_of(Table(path), path)))
    batches = list(arrived(numbers(*range(len(arrived.packed)))))
    found = canonical_rows(pa.Table.from_batches(batches))
    assert difference(canonical_rows(Table(path).read_arrow()), found) == ""


def test_a_task_that_runs_twice_gives_the_same_rows(golden: GoldenTable) -> None:
    path = str(golden(PARTIAL))
    tasks = tasks_of(Table(path), path)
    assert list(tasks(numbers(0))) == list(tasks(numbers(0)))


def test_a_task_carries_the_whole_slices_of_its_own_only(golden: GoldenTable) -> None:
    path = str(golden(PARTIAL))
    table = Table(path)
    scan = table.explain().scan
    (slice_,) = scan.slices
    stranger = slice_of(7, 1)
    spec = replace(scan.spec, whole_slices={slice_.key: slice_, stranger.key: stranger})
    tasks = merge_tasks(Location(path), spec, [slice_], cores=1)
    assert not tasks.spec.whole_slices
    assert set(pickle.loads(tasks.packed[0]).whole_slices) == {slice_.key}


def test_batches_are_cut_for_the_jvm() -> None:
    text = "x" * (1 << 20)
    batch = pa.record_batch({"text": pa.array([text] * 80)})
    schema = pa.schema([("text", pa.string())])
    pieces = list(frames.handed_over(batch, schema))
    assert [piece.num_rows for piece in pieces] == [27, 27, 26]
    assert pa.Table.from_batches(pieces) == pa.Table.from_batches([batch])
