"""The front door: a Hudi table, opened by its path."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa

from lakewarden.context_factory import Options
from lakewarden.engine.kernel.settings import Setting, Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.read.merge.predicate import Filter
from lakewarden.engine.read.query.answer import Answer, Batches, PlannedT, Scan
from lakewarden.engine.read.query.captured import LATEST_STATE, CapturedScan, plan_window
from lakewarden.engine.read.query.explain import Explanation, explain
from lakewarden.engine.read.query.lookup import plan_lookup
from lakewarden.engine.read.query.plan_query import Query, Time, plan_query
from lakewarden.engine.run.executor import Executor, LocalExecutor, ReportingExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.inline import after_write
from lakewarden.engine.services.options import ALL_SETTINGS, OF_WRITES, given_options, in_our_words
from lakewarden.engine.snapshot import Memory, Snapshot, load_snapshot, load_table
from lakewarden.engine.spark.scan.frames import planned_frame
from lakewarden.engine.spark.service_tasks import SparkExecutor
from lakewarden.engine.spark.write.incoming import batch_of, fetched, incoming_frame, is_frame
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.table.config import TableConfig, kept_settings, load_config
from lakewarden.engine.table.creation import NewTable, property_texts, table_name
from lakewarden.engine.table.description import refuse_other
from lakewarden.engine.transaction.state.context import Context, load_for_writing
from lakewarden.engine.write import operations
from lakewarden.engine.write.create_table import create_table
from lakewarden.engine.write.distributed_rows import DistributedRows
from lakewarden.engine.write.metadata_table import ensure_metadata_table
from lakewarden.engine.write.operations import Rows
from lakewarden.engine.write.request import Commit, Incoming, StreamBatch, WriteRequest
from lakewarden.engine.write.row_changes import OnMatch, OnNoMatch, Values
from lakewarden.engine.write.streams import Stream
from lakewarden.engine.write.writer import TableWriter
from lakewarden.environment import environment_settings
from lakewarden.late_imports import find_named_table, table_settings
from lakewarden.progress import ProgressCallback, reporting
from lakewarden.table_metadata import TableMetadata
from lakewarden.table_services import TableServices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Taken = TypeVar("Taken")


class Table(TableServices, TableMetadata):
    """A Hudi table. Each call reads a fresh snapshot of it.

    Writes take options by Hudi's names, or as keywords that are the end of such a name:
    `small_file_limit` is `hoodie.parquet.small.file.limit`.
    """

    def __init__(
        self,
        path: str,
        storage_options: Mapping[str, object] | None = None,
        *,
        executor: Executor | None = None,
        ports: Ports | None = None,
        session: Mapping[str, str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        """`on_progress` is called with a `Progress` as work goes on; it must be quick."""
        storage = open_storage(Location(str(path), dict(storage_options or {})))
        if ports is None:
            ports = Ports(executor=executor or LocalExecutor(), events=reporting(on_progress))
        self._open(storage, ports, session)

    def _open(
        self, storage: Storage, ports: Ports, session: Mapping[str, str] | None = None
    ) -> None:
        self._storage = storage
        self._ports = ports
        self._executor = ports.executor
        self._reader = ReportingExecutor(ports.executor, ports.events, "read")
        # They hold for all tables of a session, so that those which mean nothing here are let be.
        self._session = dict(session or {})
        self._memory = Memory(load_config(storage))

    @classmethod
    def named(cls, spark: "SparkSession", name: str) -> Self:
        """Open a table by its name in a session's catalog; the session's settings apply.

        The name may have several parts. The entry may be USING lakewarden or USING hudi.
        """
        settings = table_settings(spark)
        found = find_named_table(spark, name, settings)
        return cls(found.path, found.storage_options, session=settings)

    @classmethod
    def on(cls, storage: Storage, ports: Ports | None = None) -> Self:
        """Open the table at the root of a storage, with the caller's own ports."""
        table = cls.__new__(cls)
        table._open(storage, ports or Ports())
        return table

    @classmethod
    def create(
        cls,
        path: str,
        schema: pa.Schema,
        key: Sequence[str],
        partition: Sequence[str] = (),
        ordering: Sequence[str] = (),
        type: str = "cow",
        merge_mode: str | None = None,
        index: str | None = None,
        properties: Mapping[str, object] | None = None,
        indexes: Sequence[str] = (),
        *,
        storage_options: Mapping[str, object] | None = None,
        storage: Storage | None = None,
        ports: Ports | None = None,
    ) -> Self:
        """Create an empty table.

        `type` is "cow" or "mor". `merge_mode` is "commit_time" or "event_time"; by default it is
        event time if there are ordering columns. `index` says how writes look up keys. `indexes`
        are those of the metadata table besides the default. `properties` are Hudi's and settings.
        """
        storage = storage or open_storage(Location(str(path), dict(storage_options or {})))
        asked = NewTable(
            name=table_name(storage.location.uri),
            schema=schema,
            key=list(key),
            partition=list(partition),
            ordering=list(ordering),
            type=type,
            merge_mode=merge_mode,
            properties=property_texts(properties or {}),
        )
        create_table(storage, in_our_words(asked), index=index, indexes=indexes, known=ALL_SETTINGS)
        table = cls.on(storage, ports)
        context = table._context({}, table.properties)
        ensure_metadata_table(context, load_for_writing(context))
        return table

    def __repr__(self) -> str:
        return f"Table({self._storage.location.uri!r})"

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream for DuckDB, Polars, pandas and others, which read as they need."""
        return self.read_batches().__arrow_c_stream__(requested_schema)

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

    def state(self) -> Snapshot:
        """An immutable snapshot of the table, for callers that inspect its files."""
        return self._state()

    def settings(self, options: Options = None, **keywords: object) -> Settings:
        """The effective settings of a call with these options."""
        return self._settings(given_options(options, keywords), self.properties)

    def read_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Time | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> pa.Table:
        """The rows as one Arrow table."""
        return self._answer(Query(columns, filter, as_of, mode, use_metadata)).table(self._reader)

    def read_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Time | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> Batches:
        """The rows in batches, also for Arrow's readers; memory is bounded by a slice's logs."""
        return self._answer(Query(columns, filter, as_of, mode, use_metadata)).batches()

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Time | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> Explanation:
        """What a read with these arguments opens, what it skips, and why."""
        answer = self._answer(Query(columns, filter, as_of, mode, use_metadata))
        return answer.of_scan(lambda scan: explain(self._storage, scan))

    def changes_arrow(
        self,
        since: Time,
        until: Time | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        mode: str = LATEST_STATE,
    ) -> pa.Table:
        """The rows of commits that completed after `since`, and at or before `until`.

        With mode "cdc" what each commit did to each row: `op` (i, u or d), `ts_ms` (the commit),
        and the row `before` and `after` it as JSON.
        """
        return self._changes(since, until, Query(columns, filter), mode).table(self._reader)

    def lookup(
        self, keys: Sequence[object], columns: Sequence[str] | None = None, *, by: str | None = None
    ) -> pa.Table:
        """The rows with the given record keys, or values of the column `by`, through an index of
        these if there is one."""
        answer = self._planned(lambda state: plan_lookup(state, keys, columns, by))
        return answer.table(self._executor)

    def read(
        self,
        spark: "SparkSession",
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        as_of: Time | None = None,
        mode: str = "snapshot",
        *,
        use_metadata: bool = True,
    ) -> "DataFrame":
        """The rows as a Spark DataFrame."""
        answer = self._answer(Query(columns, filter, as_of, mode, use_metadata))
        return planned_frame(spark, self._storage, answer.scan(), self._executor)

    def changes(
        self,
        spark: "SparkSession",
        since: Time,
        until: Time | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        mode: str = LATEST_STATE,
    ) -> "DataFrame":
        """The rows of later commits as a Spark DataFrame."""
        changes = self._changes(since, until, Query(columns, filter), mode)
        return planned_frame(spark, self._storage, changes.scan(), self._executor)

    def upsert(
        self, rows: Rows, options: Options = None, *, stream: Stream = None, **keywords: object
    ) -> Commit:
        """Insert rows, or update the rows that have their keys, by the table's merge mode.

        With `stream=("name", batch)`, as in foreachBatch, the same batch again writes nothing.
        """
        request = operations.upsert(self._taken(rows, options, keywords))
        return self._write(request, options, keywords, batch_of(stream, rows))

    def insert(
        self, rows: Rows, options: Options = None, *, stream: Stream = None, **keywords: object
    ) -> Commit:
        """Append rows without a key lookup: an existing key is then in the table twice."""
        request = operations.insert(self._taken(rows, options, keywords))
        return self._write(request, options, keywords, batch_of(stream, rows))

    def bulk_insert(
        self,
        rows: Rows,
        sort: Sequence[str] = (),
        options: Options = None,
        **keywords: object,
    ) -> Commit:
        """Append many rows in new file groups of even size, optionally sorted."""
        return self._write(
            operations.bulk_insert(self._taken(rows, options, keywords), sort or ()),
            options,
            keywords,
        )

    def delete(
        self,
        rows_or_keys: operations.RowsOrKeys,
        options: Options = None,
        *,
        stream: Stream = None,
        **keywords: object,
    ) -> Commit:
        """Delete rows by their key columns, or by a list of record keys."""
        taken = self._taken(rows_or_keys, options, keywords)
        request = operations.delete(taken, self.config)
        return self._write(request, options, keywords, batch_of(stream, rows_or_keys))

    def delete_where(self, filter: Filter, options: Options = None, **keywords: object) -> Commit:
        """Delete all rows that match a filter."""
        return self._write(operations.delete_where(filter, self._executor), options, keywords)

    def update_where(
        self, filter: Filter, values: Values, options: Options = None, **keywords: object
    ) -> Commit:
        """Update columns of all rows that match a filter, to values or expressions.

        A row moves if its partition columns change. The call refuses two rows of one key, an
        existing key, and a lower ordering value; then nothing is written.
        """
        settings = self._of_writes(options, keywords)
        request = operations.update_where(filter, values, self._executor, settings)
        return self._write(request, options, keywords)

    def merge(
        self,
        rows: Rows,
        on_match: OnMatch = "update",
        on_no_match: OnNoMatch = "insert",
        options: Options = None,
        **keywords: object,
    ) -> Commit:
        """Update, delete or insert rows, by whether the table has their keys.

        Of several rows of one key the newest counts, by the ordering fields; the call refuses equal
        ones. A row of the table with a higher ordering value stays.
        `on_match` is "update", "delete", "ignore", or new values by column, in which expressions
        see the row's columns and the incoming ones as `source.<column>`; `on_no_match` is "insert"
        or "ignore".
        """
        # A merge reads what the table has for these rows, so that they have to be here.
        rows = fetched(rows) if is_frame(rows) else rows
        settings = self._of_writes(options, keywords)
        request = operations.merge(rows, on_match, on_no_match, self._executor, settings)
        return self._write(request, options, keywords)

    def overwrite(self, rows: Rows, options: Options = None, **keywords: object) -> Commit:
        """Replace all rows of the table."""
        return self._write(
            operations.overwrite(self._taken(rows, options, keywords)), options, keywords
        )

    def overwrite_partitions(
        self, rows: Rows, options: Options = None, **keywords: object
    ) -> Commit:
        """Replace all rows of the partitions that the rows belong to."""
        return self._write(
            operations.overwrite_partitions(self._taken(rows, options, keywords)), options, keywords
        )

    def delete_partitions(
        self, partitions: Sequence[str], options: Options = None, **keywords: object
    ) -> Commit:
        """Delete all rows of partitions, named by their paths."""
        columns = self._state().schema().columns
        request = operations.delete_partitions(partitions, columns, self.config)
        return self._write(request, options, keywords)

    def write(
        self, request: WriteRequest, options: Options = None, *, stream: Stream = None
    ) -> Commit:
        """Execute a write request."""
        return self._write(request, options, {}, batch_of(stream, None))

    def _write(
        self,
        request: WriteRequest,
        options: Options,
        keywords: Mapping[str, object],
        batch: StreamBatch | None = None,
    ) -> Commit:
        request = replace(request, batch=batch or request.batch)
        config, _ = loaded = load_table(self._storage, self._memory)
        refuse_other(config, given := given_options(options, keywords, OF_WRITES))
        context = self._context(given, config.properties)
        loaded = self._upgraded(context, loaded)
        return after_write(context, TableWriter(context).write(request, loaded)).commit

    def _taken(
        self, rows: Taken, options: Options, keywords: Mapping[str, object]
    ) -> Taken | Incoming | DistributedRows:
        """Rows as they are; those of a Spark DataFrame here, or known to be with Spark."""
        if not is_frame(rows):
            return rows
        settings = self._of_writes(options, keywords)
        return incoming_frame(rows, self._storage.location, settings, self.config)

    def _of_writes(self, options: Options, keywords: Mapping[str, object]) -> Settings:
        return self._settings(given_options(options, keywords, OF_WRITES), self.properties)

    def _context_factory(
        self,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        *,
        own: Sequence[Setting[object]] = (),
        parameters: Collection[str] = (),
        spark: "SparkSession | None" = None,
        group: str = "",
    ) -> Context:
        given = given_options(options, keywords or {}, own, parameters)
        context = self._context(given, self.properties)
        if spark is None:
            return context
        return replace(context, ports=replace(self._ports, executor=SparkExecutor(spark, group)))

    def _context(self, given: Mapping[str, object], properties: Mapping[str, str]) -> Context:
        settings = self._settings(given, properties)
        lock = open_lock(self._storage, settings, self._ports)
        return Context(self._storage, lock, self._ports, settings, self._memory)

    def _settings(self, given: Mapping[str, object], properties: Mapping[str, str]) -> Settings:
        return Settings.of(
            arguments=given,
            session=self._session,
            table=kept_settings(properties),
            environment=environment_settings(),
        )

    def _answer(self, query: Query) -> Answer[Scan]:
        return self._planned(lambda state: plan_query(state, query))

    def _changes(
        self, since: Time, until: Time | None, query: Query, mode: str
    ) -> Answer[Scan | CapturedScan]:
        return self._planned(lambda state: plan_window(state, since, until, query, mode))

    def _planned(self, plan: Callable[[Snapshot], PlannedT]) -> Answer[PlannedT]:
        return Answer(self._storage, plan, self._memory)

    def _state(self) -> Snapshot:
        return load_snapshot(self._storage, self._memory)
