"""Rows of the archived timeline: completed instants in a Parquet file, sorted by instant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.instant_metadata.codec import schema_text
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.timeline.instants.instant import Action, Instant, State

ROW_VERSION = 1
TIME_COLUMNS = ("instantTime", "completionTime", "action")
CONTENT_COLUMNS = ("metadata", "plan")

_FIELDS = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_FOOTER = {"parquet.avro.schema": schema_text("archived_instant"), "writer.model.name": "avro"}


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant with its contents: the metadata it completed with, and its plan."""

    instant: Instant
    metadata: bytes | None = None
    plan: bytes | None = None


def row_table(rows: Iterable[ArchivedInstant]) -> pa.Table:
    """Archived instants as a table, in the order in which they are given."""
    records = [
        {
            "instantTime": row.instant.requested,
            "completionTime": row.instant.completed,
            "action": row.instant.action.value,
            "metadata": row.metadata,
            "plan": row.plan,
            "version": ROW_VERSION,
        }
        for row in rows
    ]
    return pa.Table.from_pylist(records, schema=_FIELDS)


def encode_rows(table: pa.Table) -> bytes:
    """The Parquet file for a table of rows, with the columns, codec and footer Java gives it."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, _FIELDS, compression="gzip", store_schema=False, version="1.0"
    ) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        writer.add_key_value_metadata(_FOOTER)
    return bytes(sink.getvalue())


def read_rows(
    source: pa.NativeFile,
    path: str,
    columns: Sequence[str] = tuple(_FIELDS.names),
    *,
    since: str | None = None,
    until: str | None = None,
) -> pa.Table:
    """The rows from `since` to `until`, both included; of other columns no byte is read."""
    try:
        with pq.ParquetFile(source) as file:
            table = file.read(columns=list(columns)).select(columns)
        wanted = pa.schema([_FIELDS.field(name) for name in columns])
        table = table.cast(wanted)
        table.validate(full=True)
        return _between(table, since, until)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise corrupt(path, None, f"It is not a file of archived instants: {error}.") from error


def instants(table: pa.Table, path: str) -> tuple[Instant, ...]:
    """The instants of a table that has the time columns."""
    return tuple(
        _instant(requested, completed, word, path)
        for requested, completed, word in zip(
            *(table.column(name).to_pylist() for name in TIME_COLUMNS), strict=True
        )
    )


def archived_instants(table: pa.Table, path: str) -> tuple[ArchivedInstant, ...]:
    """The instants of a table that has all columns, with their contents."""
    contents = zip(*(table.column(name).to_pylist() for name in CONTENT_COLUMNS), strict=True)
    return tuple(
        ArchivedInstant(instant, metadata, plan)
        for instant, (metadata, plan) in zip(instants(table, path), contents, strict=True)
    )


def _between(table: pa.Table, since: str | None, until: str | None) -> pa.Table:
    if since is not None:
        table = table.filter(pc.greater_equal(table["instantTime"], since))
    if until is not None:
        table = table.filter(pc.less_equal(table["instantTime"], until))
    return table


def _instant(requested: str | None, completed: str | None, word: str | None, path: str) -> Instant:
    if not requested:
        raise corrupt(path, None, "A row has no instant.")
    try:
        action = Action(word)
    except ValueError:
        raise corrupt(path, None, f"It names the unknown action {word!r:.40}.") from None
    # Java takes an instant without completion time to have completed when it was requested.
    return Instant(requested, action, State.COMPLETED, completed or requested)
