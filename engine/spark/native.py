"""Native slices: those whose base file Spark's own Parquet scan reads to the rows we would read."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.spec import ReadSpec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.addresses import spark_address
from lakewarden.engine.spark.types import spark_type
from lakewarden.engine.spark.where import sql_condition
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.view.slices import FileSlice


@dataclass(frozen=True, slots=True)
class Shares:
    """The slices of a scan by who reads them: Spark by itself, or our reader in Spark's workers."""

    native: tuple[FileSlice, ...]
    merged: tuple[FileSlice, ...]


def share_out(storage: Storage, scan: Scan, executor: Executor) -> Shares:
    """Give Spark what it reads to the same rows, and keep the rest."""
    if spark_address(storage.uri("")) is None or sql_condition(scan.spec) is None:
        return Shares((), scan.slices)
    plain = [slice_ for slice_ in scan.slices if _is_plain(slice_, scan.spec)]
    # One write makes all its files with one schema, so one footer of each write tells.
    samples = {slice_.base_instant: slice_ for slice_ in plain}
    answers = executor.map(
        lambda slice_: _has_table_types(storage, slice_, scan.spec), tuple(samples.values())
    )
    fitting = {instant for instant, fits in zip(samples, answers, strict=True) if fits}
    native = frozenset(slice_.key for slice_ in plain if slice_.base_instant in fitting)
    return Shares(
        tuple(slice_ for slice_ in scan.slices if slice_.key in native),
        tuple(slice_ for slice_ in scan.slices if slice_.key not in native),
    )


def _is_plain(slice_: FileSlice, spec: ReadSpec) -> bool:
    """Whether the base file alone has the rows, and every value as it is shown."""
    if slice_.base_file is None or slice_.log_files or spec.drops_partition_columns:
        return False
    if spec.history.sources(slice_.base_instant):
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
    type_ = spark_type(stored.field(field.name).type)
    return type_ is not None and type_ == spark_type(field.type)
