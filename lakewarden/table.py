"""The front door: a Hudi table, opened by its path."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewarden.engine.metadata.definitions import IndexDefinition, load_definitions
from lakewarden.engine.read.changes import plan_changes
from lakewarden.engine.read.explain import Explanation, explain
from lakewarden.engine.read.lookup import plan_lookup
from lakewarden.engine.read.plan_query import Query, plan_query
from lakewarden.engine.read.predicate import Filter
from lakewarden.engine.read.scan import Scan
from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.read.times import parse_time
from lakewarden.engine.run.executor import Executor, LocalExecutor
from lakewarden.engine.spark.frames import scan_frame
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.view.slices import FileSlice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table:
    """A Hudi table. Every call sees the table as it is at that moment."""

    def __init__(
        self,
        path: str,
        storage_options: Mapping[str, object] | None = None,
        *,
        executor: Executor | None = None,
    ) -> None:
        self._storage = open_storage(Location(str(path), dict(storage_options or {})))
        self._executor = executor or LocalExecutor()
        load_config(self._storage)

    def __repr__(self) -> str:
        return f"Table({self._storage.location.uri!r})"

    @property
    def config(self) -> TableConfig:
        """What the table's properties say, parsed."""
        return load_config(self._storage)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties as they are stored."""
        return self.config.properties

    @property
    def schema(self) -> pa.Schema:
        """The columns a read returns, meta columns first."""
        return self._state().reader_schema()

    def timeline(self) -> ActiveTimeline:
        """The active timeline."""
        return self._state().timeline.active

    def partitions(self) -> tuple[str, ...]:
        """The partition paths; a table without partitions has the one path ""."""
        return self._state().source(use_metadata=True).partitions()

    def file_slices(
        self, partition: str | None = None, as_of: str | None = None, *, use_metadata: bool = True
    ) -> tuple[FileSlice, ...]:
        """The file slices that a snapshot query reads."""
        state = self._state()
        partitions = None if partition is None else (partition,)
        groups = state.file_groups(
            state.visibility(parse_time(as_of)), partitions, use_metadata=use_metadata
        )
        return tuple(group.latest_merged() for group in groups)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        """The indexes and other partitions of the metadata table."""
        return load_definitions(self._storage, self.config)

    def read_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> pa.Table:
        """The rows at once."""
        scan = self._scan(Query(columns, filter, as_of, mode, use_metadata))
        return scan.table(self._storage, self._executor)

    def read_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in batches; memory is bounded by a slice's logs, not by the table."""
        scan = self._scan(Query(columns, filter, as_of, mode, use_metadata))
        return scan.batches(self._storage)

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> Explanation:
        """What a read with these arguments touches, and what it skips and why."""
        return explain(self._storage, self._scan(Query(columns, filter, as_of, mode, use_metadata)))

    def changes_arrow(
        self,
        since: str,
        until: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """The rows written by commits completed after `since` and not after `until`."""
        scan = plan_changes(self._state(), since, until, Query(columns, filter))
        return scan.table(self._storage, self._executor)

    def lookup(self, keys: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with the given record keys, found through the record index if there is one."""
        scan = plan_lookup(self._state(), keys, columns)
        return scan.table(self._storage, self._executor)

    def read(
        self,
        spark: "SparkSession",
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: str | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> "DataFrame":
        """The rows as a Spark DataFrame."""
        scan = self._scan(Query(columns, filter, as_of, mode, use_metadata))
        return scan_frame(spark, self._storage, scan, self._executor)

    def changes(
        self,
        spark: "SparkSession",
        since: str,
        until: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> "DataFrame":
        """The rows of later commits as a Spark DataFrame."""
        scan = plan_changes(self._state(), since, until, Query(columns, filter))
        return scan_frame(spark, self._storage, scan, self._executor)

    def _scan(self, query: Query) -> Scan:
        return plan_query(self._state(), query)

    def _state(self) -> TableState:
        return TableState(self._storage)
