"""Native slices: those whose base file Spark's own Parquet scan reads to the rows we would read."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.widening import says_micros
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.read.query.scan import Scan
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.spark.scan.where import sql_condition
from lakewarden.engine.spark.workers.addresses import spark_address
from lakewarden.engine.spark.workers.types import spark_type
from lakewarden.engine.storage.port import Storage


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
    if slice_.log_files or spec.history.sources(slice_.base_instant):
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
