"""Streams of Spark into tables: each batch of a query is in the table once.

A batch is named by its query, whose identity lies in the query's checkpoint, or by the name that
the caller gives the stream. There is no name by default that two queries could share.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakewarden.engine.formats.json_text import parse_json
from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.spark.write.incoming import batch_of, fetched
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.operations import apply_changes
from lakewarden.engine.write.request import Commit, StreamBatch
from lakewarden.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_IS_DELETE = "_lakewarden_is_delete"
_METADATA = "metadata"


def stream_upsert(
    df: "DataFrame",
    table: Table | str,
    *,
    checkpoint: str,
    name: str | None = None,
    sequence_by: str | Sequence[str] | None = None,
    apply_as_deletes: str | None = None,
    trigger: Mapping[str, object] | str | None = None,
    options: Mapping[str, object] | None = None,
    on_batch: Callable[[int, Commit], None] | None = None,
) -> "StreamingQuery":
    """Start a query that upserts a streaming DataFrame into a table; each batch is there once.

    `table` is a table, its path, or its name in the session's catalog. `checkpoint` is where Spark
    keeps the query's progress. The stream is known by the query's identity there, or by `name`.
    `sequence_by` says which row of a key is the newest: the table's ordering columns. Rows for
    which the SQL condition `apply_as_deletes` is true are deleted. `trigger` is Spark's, such as
    `{"availableNow": True}`, or a text for `processingTime`. `options` are those of the writes.
    `on_batch` is called with the number and the `Commit` of each batch, once it is in the table.
    """
    target = _opened(df.sparkSession, table)
    location = target.state().storage.location
    _refuse_other_order(target, sequence_by)
    if apply_as_deletes is not None:
        df = df.selectExpr("*", f"coalesce({apply_as_deletes}, false) AS {_IS_DELETE}")
    batches = StreamBatches(
        uri=location.uri,
        storage_options=dict(location.options),
        table=target,
        checkpoint=checkpoint,
        name=name or "",
        has_deletes=apply_as_deletes is not None,
        options=dict(options or {}),
        on_batch=on_batch,
    )
    writer = df.writeStream.foreachBatch(batches).option("checkpointLocation", checkpoint)
    if trigger is not None:
        given = {"processingTime": trigger} if isinstance(trigger, str) else dict(trigger)
        writer = writer.trigger(**given)
    return (writer.queryName(name) if name else writer).start()


@dataclass
class StreamBatches:
    """Writes the batches of one query, in whatever process Spark calls it."""

    uri: str
    storage_options: dict[str, object] = field(repr=False)
    checkpoint: str
    name: str
    has_deletes: bool
    options: dict[str, object]
    # None where the batches are written by another process, which opens the table itself.
    table: Table | None = None
    # What it raises ends the query; the batch is in the table, and comes again.
    on_batch: Callable[[int, Commit], None] | None = None

    def __call__(self, frame: "DataFrame", number: int) -> None:
        """Write one batch; it has committed, or was there, when the call returns."""
        commit = self.write(frame, number)
        if self.on_batch is not None:
            self.on_batch(number, commit)

    def write(self, frame: "DataFrame", number: int) -> Commit:
        if self.table is None:
            self.table = Table(self.uri, self.storage_options)
        asked = StreamBatch(stream=self.name or "?", number=number, checkpoint=self.checkpoint)
        batch = batch_of(asked, frame)
        assert batch is not None
        query = batch.query or query_in(self.checkpoint, self.storage_options)
        batch = named_batch(self.name, number, query, self.checkpoint)
        if not self.has_deletes:
            return self.table.upsert(frame, self.options, stream=batch)
        rows = fetched(frame)
        is_delete = rows.column(_IS_DELETE)
        request = apply_changes(rows.drop_columns([_IS_DELETE]), is_delete)
        return self.table.write(request, self.options, stream=batch)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "table": None}


def named_batch(name: str, number: int, query: str, checkpoint: str) -> StreamBatch:
    """The batch of a query; without a name the stream has that of the query's identity."""
    if not (name or query):
        raise InvalidRequest(
            "no_stream_name",
            what="The stream has no name.",
            why=f"The identity of its query cannot be read from the checkpoint {checkpoint!r:.80}.",
            now="Give the stream a name of its own, that no other stream has.",
        )
    return StreamBatch(stream=name or query, number=number, query=query, checkpoint=checkpoint)


def query_in(checkpoint: str, storage_options: Mapping[str, object]) -> str:
    """The identity of the query that a checkpoint belongs to; "" where it cannot be read."""
    try:
        found = open_storage(Location(checkpoint, storage_options)).read_if_present(_METADATA)
        record = parse_json(found, _METADATA) if found else {}
    except LakewardenError:
        return ""
    return str(record.get("id", "")) if isinstance(record, dict) else ""


def _opened(spark: "SparkSession", table: Table | str) -> Table:
    if isinstance(table, Table):
        return table
    is_path = "/" in table or "\\" in table
    return Table(table) if is_path else Table.named(spark, table)


def _refuse_other_order(table: Table, sequence_by: str | Sequence[str] | None) -> None:
    if sequence_by is None:
        return
    asked = [sequence_by] if isinstance(sequence_by, str) else list(sequence_by)
    ordering = list(table.config.merge.ordering_fields)
    if asked != ordering:
        raise InvalidRequest(
            "other_sequence",
            what=f"The stream asks for the order of {', '.join(asked)}.",
            why=f"The table's rows are ordered by {', '.join(ordering) or 'their arrival'}.",
            now="Create the table with these ordering columns, or leave sequence_by out.",
        )
