"""The data source: `spark.read` and `df.write` with the format `lakewarden`.

It has what Spark lets a data source in Python have. `Table.read` and `Table.upsert` do more: they
leave plain files to Spark's own scan, and large frames to its workers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.read.query.captured import CapturedScan
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.spark.scan.frames import Tasks, tasks_of
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import CORES_WHEN_UNKNOWN
from lakewarden.engine.spark.workers.types import ddl
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.source_options import FORMAT, asked_scan, named_options
from lakewarden.source_writer import FrameWriter, StreamWriter
from lakewarden.storage_options import storage_options


class LakewardenSource(DataSource):
    """A Hudi table by its path."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ddl(self._scan().output_schema)

    def reader(self, schema: StructType) -> "ScanReader":
        return ScanReader(self._location, self._scan())

    def writer(self, schema: StructType, overwrite: object) -> DataSourceArrowWriter:
        return FrameWriter(self._location, self._given, schema, overwrites=bool(overwrite))

    def streamWriter(self, schema: StructType, overwrite: object) -> StreamWriter:  # noqa: N802
        return StreamWriter(self._location, self._given, schema, overwrites=bool(overwrite))

    @property
    def _location(self) -> Location:
        path = self.options.get("path")
        if not path:
            raise InvalidRequest(
                "no_path",
                what="The table's path is missing.",
                why="The data source finds a table by its path, not by a name.",
                now="Pass it to load(), save() or start(); with toTable() as option('path', ...).",
            )
        return Location(str(path), storage_options(self.options))

    @property
    def _given(self) -> dict[str, str]:
        """The options that are not about the place."""
        return named_options(self.options)

    def _scan(self) -> Scan | CapturedScan:
        return asked_scan(load_snapshot(open_storage(self._location)), self._given)


class ScanReader(DataSourceReader):
    """Reads a scan; each partition is one task of about the same size."""

    def __init__(self, location: Location, scan: Scan | CapturedScan) -> None:
        check_reachable(location)
        self._tasks: Tasks = tasks_of(location, scan, CORES_WHEN_UNKNOWN)

    def partitions(self) -> Sequence[InputPartition]:
        # Without any, Spark would read a partition that was never planned.
        return [InputPartition(packed) for packed in self._tasks.packed or (self._tasks.nothing,)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        tasks = replace(self._tasks, packed=(partition.value,))
        return tasks(iter([pa.record_batch({"number": [0]})]))

    def __getstate__(self) -> Tasks:
        # Partitions travel by themselves: none of them has to carry the others.
        return replace(self._tasks, packed=())

    def __setstate__(self, state: Tasks) -> None:
        self._tasks = state
