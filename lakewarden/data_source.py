"""The data source: `spark.read` and `df.write` with the format `lakewarden`.

It has what Spark lets a data source in Python have. `Table.read` and `Table.upsert` do more: they
leave plain files to Spark's own scan, and large frames to its workers.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from lakewarden.engine.read.query.captured import CDC, LATEST_STATE, CapturedScan, plan_window
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.services.options import ALL_SETTINGS, understood
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.spark.scan.frames import Tasks, tasks_of
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.cores import CORES_WHEN_UNKNOWN
from lakewarden.engine.spark.workers.types import ddl
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.source_writer import FrameWriter, StreamWriter
from lakewarden.storage_options import is_for_storage, storage_options

FORMAT = "lakewarden"
AS_OF, SINCE, UNTIL, QUERY_TYPE, CHANGES_MODE = (
    "as.of.instant",
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.end.instanttime",
    "hoodie.datasource.query.type",
    "hoodie.datasource.query.incremental.format",
)
_INCREMENTAL = "incremental"
# Our words for what Hudi's options say.
_SHORT = {"as_of": AS_OF, "since": SINCE, "until": UNTIL, "mode": QUERY_TYPE}


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


def named_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are not about the place, by Hudi's names."""
    return {
        _SHORT.get(key, key): value
        for key, value in options.items()
        if key != "path" and not is_for_storage(key)
    }


def asked_scan(
    state: Snapshot, options: Mapping[str, str], query: Query | None = None
) -> Scan | CapturedScan:
    """The scan that options ask for; columns and filter are those of the query."""
    query = query or Query()
    understood(options, ALL_SETTINGS, (*_SHORT, *_SHORT.values(), CHANGES_MODE))
    kind = _kind(options)
    if kind == _INCREMENTAL:
        since, mode = options.get(SINCE, "0"), options.get(CHANGES_MODE, LATEST_STATE)
        return plan_window(state, since, options.get(UNTIL), query, mode.lower())
    return plan_query(state, replace(query, as_of=options.get(AS_OF), mode=kind))


def asks_for_changes(options: Mapping[str, str]) -> bool:
    """Whether options ask for what commits did to rows, which has columns of its own."""
    return _kind(options) == _INCREMENTAL and options.get(CHANGES_MODE, "").lower() == CDC


def _kind(options: Mapping[str, str]) -> str:
    return options.get(QUERY_TYPE, _INCREMENTAL if SINCE in options else "snapshot")


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
