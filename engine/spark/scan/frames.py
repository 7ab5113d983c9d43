"""Frames: a scan as a Spark DataFrame.

Merging in workers: tasks of about the same size, to which only descriptors travel.

Captured changes in workers: each task has some file groups' changes, in the order of commits.
"""

import heapq
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.widening import says_micros
from lakewarden.engine.read.merge.row_changes import ChangeReader, ChangeSpec, GroupChange
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.captured import CapturedScan
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.scan.where import EVERYTHING, sql_condition
from lakewarden.engine.spark.workers.addresses import (
    check_reachable,
    reads_by_itself,
    spark_address,
)
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.older_sparks import frame_of
from lakewarden.engine.spark.workers.types import ddl, quoted, spark_type, wire_schema
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Enough tasks a core to even out slices of different size; each one costs a worker some 40 ms.
TASKS_PER_CORE = 2
# A larger task would lose more when it fails, and leave the cores of a large cluster idle.
TASK_BYTES = 128 << 20
# The JVM holds a few batches of every running task.
BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Some slices, and what of the query is about them alone."""

    slices: tuple[FileSlice, ...]
    whole_slices: Mapping[FileGroupId, FileSlice]


@dataclass(frozen=True, slots=True)
class MergeTasks:
    """Tasks by number, each one packed for itself: a worker opens only those that it runs."""

    location: Location
    spec: ReadSpec
    packed: tuple[bytes, ...]
    # A task without rows.
    nothing: ClassVar[bytes] = pickle.dumps(MergeTask((), {}))

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks with these numbers, read where this runs."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self._rows(pickle.loads(self.packed[number]))

    def _rows(self, task: MergeTask) -> Iterator[pa.RecordBatch]:
        spec = replace(self.spec, whole_slices=task.whole_slices)
        reader = SliceReader(open_storage(self.location), spec)
        schema = wire_schema(spec.output_schema)
        for slice_ in task.slices:
            for rows in reader.batches(slice_):
                yield from handed_over(rows, schema)


def merge_tasks(
    location: Location, spec: ReadSpec, slices: Sequence[FileSlice], cores: int
) -> MergeTasks:
    """Tasks that read some slices, for Spark to run on so many cores."""
    size_bytes = sum(slice_.size_bytes for slice_ in slices)
    wanted = max(cores * TASKS_PER_CORE, size_bytes // TASK_BYTES)
    parts = balanced(slices, min(wanted, len(slices)))
    packed = tuple(pickle.dumps(_task(part, spec)) for part in parts)
    return MergeTasks(location, replace(spec, whole_slices={}), packed)


def _task(slices: tuple[FileSlice, ...], spec: ReadSpec) -> MergeTask:
    keys = {slice_.key for slice_ in slices} & spec.whole_slices.keys()
    return MergeTask(slices, {key: spec.whole_slices[key] for key in keys})


def balanced(slices: Sequence[FileSlice], count: int) -> list[tuple[FileSlice, ...]]:
    """The slices in so many parts of about the same size: the largest first, each to the least."""
    parts: list[list[FileSlice]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for slice_ in sorted(slices, key=lambda slice_: (-slice_.size_bytes, slice_.key)):
        size_bytes, number = loads[0]
        parts[number].append(slice_)
        heapq.heapreplace(loads, (size_bytes + slice_.size_bytes, number))
    return [tuple(part) for part in parts]


def handed_over(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A batch in Spark's types, in pieces that the JVM has room for."""
    pieces = -(-batch.nbytes // BATCH_BYTES)
    length = -(-batch.num_rows // max(pieces, 1))
    for start in range(0, batch.num_rows, max(length, 1)):
        yield batch.slice(start, length).cast(schema)


@dataclass(frozen=True, slots=True)
class Shares:
    """A scan shared out: files for Spark to read by itself, slices for our reader in workers."""

    addresses: tuple[str, ...]
    slices: tuple[FileSlice, ...]


def share_out(storage: Storage, scan: Scan, executor: Executor) -> Shares:
    """Give Spark the base files that it reads to the same rows, and keep the other slices."""
    plain = _plain_files(storage, scan)
    # One write makes all its files with one schema, so one footer of each write tells.
    samples = {slice_.base_instant: slice_ for slice_ in scan.slices if slice_.key in plain}
    answers = executor.map(
        lambda slice_: _has_table_types(storage, slice_, scan.spec), tuple(samples.values())
    )
    preparation = {instant for instant, fits in zip(samples, answers, strict=True) if fits}
    addresses, rest = [], []
    for slice_ in scan.slices:
        if slice_.key in plain and slice_.base_instant in preparation:
            addresses.append(plain[slice_.key])
        else:
            rest.append(slice_)
    return Shares(tuple(addresses), tuple(rest))


def _plain_files(storage: Storage, scan: Scan) -> dict[FileGroupId, str]:
    """Where Spark finds the base files of slices that have all rows and values in them."""
    if sql_condition(scan.spec) is None or scan.spec.drops_partition_columns:
        return {}
    found = {}
    for slice_ in scan.slices:
        if slice_.base_file is not None and _is_plain(slice_, scan.spec):
            address = spark_address(storage.uri(slice_.path(slice_.base_file)))
            if address is not None:
                found[slice_.key] = address
    return found


def _is_plain(slice_: FileSlice, spec: ReadSpec) -> bool:
    """Whether the base file alone has the rows, under the names and values that are shown."""
    sources = spec.history.sources(slice_.base_instant)
    wanted = spec.wanted()
    if slice_.log_files or spec.unfilled & wanted or any(name in sources for name in wanted):
        return False
    # A null in the partition path is text in the file.
    return None not in spec.partitions.values(slice_.partition).values()


def _has_table_types(storage: Storage, slice_: FileSlice, spec: ReadSpec) -> bool:
    assert slice_.base_file is not None
    try:
        with storage.open(slice_.path(slice_.base_file)) as source:
            stored = pq.read_schema(source)
    except (pa.ArrowException, OSError):
        # Our reader will fail as well, but it says why and where.
        return False
    return all(_agrees(stored, spec.schema.field(name)) for name in spec.wanted())


def _agrees(stored: pa.Schema, field: pa.Field) -> bool:
    # Spark finds columns whatever their case, so only one may answer to the name.
    namesakes = [name for name in stored.names if name.lower() == field.name.lower()]
    if namesakes != [field.name]:
        return not namesakes
    own = stored.field(field.name).type
    type_ = spark_type(own)
    return (
        type_ is not None and type_ == spark_type(field.type) and not says_micros(own, field.type)
    )


@contextmanager
def setting(spark: "SparkSession", key: str, value: str) -> Iterator[None]:
    """A setting inside a block, as it was before after it; other threads see it meanwhile."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)


LISTING_TASKS_PER_CORE = 2

# A lookup of more keys, or in more file groups, is shared out to Spark's workers.
_KEYS_HERE_MAX, _SLICES_HERE_MAX = 100, 64
_ROWS_HERE_BYTES_MAX = 8 << 20

# Spark looks at many files in a job, with a task for each file, which costs it 5 ms a file.
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_PARQUET_OPTIONS = {
    # The files are named one by one: no character in a name is a pattern, no folder a column.
    "__globPaths__": "false",
    "recursiveFileLookup": "true",
    # Rows are the same whatever the session is set to.
    "datetimeRebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}


def scan_frame(
    spark: "SparkSession", storage: Storage, scan: Scan, executor: Executor
) -> "DataFrame":
    """The rows of a scan; evaluated when the frame is."""
    check_reachable(storage.location)
    columns = scan.spec.columns
    if not scan.slices:
        return spark.createDataFrame([], ddl(scan.spec.output_schema))
    # A part without columns would lose its rows, and a part need not give a column twice.
    unique = tuple(dict.fromkeys(columns)) or (min(scan.spec.wanted()),)
    spec = replace(scan.spec, columns=unique)
    shares = Shares((), scan.slices)
    if reads_by_itself(spark, storage.location):
        shares = share_out(storage, replace(scan, spec=spec), executor)
    parts = []
    if shares.addresses:
        parts.append(_parquet_frame(spark, shares.addresses, spec))
    if shares.slices:
        parts.append(_merged_frame(spark, storage.location, shares.slices, spec))
    frame = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    return frame if columns == unique else frame.select(*map(quoted, columns))


def local_frame(
    spark: "SparkSession", storage: Storage, scan: Scan, executor: Executor
) -> "DataFrame | None":
    """The rows of a scan for few keys, read here and now; None for any other scan.

    Spark answers from such rows without a job, which costs more than looking the keys up.
    """
    spec = scan.spec
    if spec.keys is None or spec.commit_times is not None or not spec.columns:
        return None
    if len(spec.keys) > _KEYS_HERE_MAX or len(scan.slices) > _SLICES_HERE_MAX:
        return None
    rows = scan.table(storage, executor)
    if rows.nbytes > _ROWS_HERE_BYTES_MAX:
        return None
    schema = spec.output_schema
    # One batch for all: each batch is read by itself.
    return frame_of(spark, rows.combine_chunks().cast(wire_schema(schema)), ddl(schema))


def _parquet_frame(spark: "SparkSession", addresses: Sequence[str], spec: ReadSpec) -> "DataFrame":
    wanted = spec.wanted()
    schema = pa.schema([field for field in spec.schema if field.name in wanted])
    reader = spark.read.schema(ddl(schema)).options(**_PARQUET_OPTIONS)
    with setting(spark, _LISTING_TASKS, str(cores_of(spark) * LISTING_TASKS_PER_CORE)):
        frame = reader.parquet(*addresses)
    condition = sql_condition(spec)
    if condition not in (None, EVERYTHING):
        frame = frame.where(condition)
    return frame.select(*map(quoted, spec.columns))


def _merged_frame(
    spark: "SparkSession", location: Location, slices: Sequence[FileSlice], spec: ReadSpec
) -> "DataFrame":
    tasks = merge_tasks(location, spec, slices, cores_of(spark))
    count = len(tasks.packed)
    # A range needs no Python process to be made, and puts one number into each partition.
    return spark.range(0, count, 1, count).mapInArrow(tasks, ddl(spec.output_schema))


@dataclass(frozen=True, slots=True)
class ChangeTasks:
    """Tasks by number, each one packed for itself: a worker opens only those that it runs."""

    location: Location
    spec: ChangeSpec
    packed: tuple[bytes, ...]
    # A task without rows.
    nothing: ClassVar[bytes] = pickle.dumps(())

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the tasks with these numbers, read where this runs."""
        reader = ChangeReader(open_storage(self.location), self.spec)
        schema = wire_schema(self.spec.output_schema)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for change in pickle.loads(self.packed[number]):
                    for rows in reader.table(change).to_batches():
                        yield from handed_over(rows, schema)


Tasks: TypeAlias = MergeTasks | ChangeTasks


def tasks_of(location: Location, scan: Scan | CapturedScan, cores: int) -> Tasks:
    """Tasks that read a scan, for Spark to run on so many cores."""
    if isinstance(scan, Scan):
        return merge_tasks(location, scan.spec, scan.slices, cores)
    size_bytes = sum(change.size_bytes for change in scan.changes)
    count = min(max(cores * TASKS_PER_CORE, size_bytes // TASK_BYTES), len(scan.changes))
    parts = _stretches(scan.changes, count)
    return ChangeTasks(location, scan.spec, tuple(pickle.dumps(part) for part in parts))


def planned_frame(
    spark: "SparkSession", storage: Storage, scan: Scan | CapturedScan, executor: Executor
) -> "DataFrame":
    """The rows of a scan of any kind; evaluated when the frame is."""
    if isinstance(scan, Scan):
        return scan_frame(spark, storage, scan, executor)
    check_reachable(storage.location)
    schema = ddl(scan.output_schema)
    if not scan.changes:
        return spark.createDataFrame([], schema)
    tasks = tasks_of(storage.location, scan, cores_of(spark))
    count = len(tasks.packed)
    return spark.range(0, count, 1, count).mapInArrow(tasks, schema)


def _stretches(changes: Sequence[GroupChange], count: int) -> Iterator[tuple[GroupChange, ...]]:
    """The changes in so many parts of even length."""
    for number in range(count):
        first, end = (len(changes) * at // count for at in (number, number + 1))
        yield tuple(changes[first:end])
