"""Frames: a scan as a Spark DataFrame."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.widening import says_micros
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.scan.merging import merge_tasks
from lakewarden.engine.spark.scan.where import EVERYTHING, sql_condition
from lakewarden.engine.spark.workers.addresses import (
    check_reachable,
    reads_by_itself,
    spark_address,
)
from lakewarden.engine.spark.workers.cores import cores_of
from lakewarden.engine.spark.workers.types import ddl, quoted, spark_type, wire_schema
from lakewarden.engine.storage.port import Location, Storage


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


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    return spark.createDataFrame(rows.combine_chunks().cast(wire_schema(schema)), ddl(schema))


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
