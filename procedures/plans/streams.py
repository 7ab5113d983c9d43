"""Streams: how far each has come in the table, and how one is forgotten."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lakewarden.engine.services.streams import StreamView
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """How far a stream has come."""

    stream: str
    batch: Annotated[int | None, "The newest batch in the table."]
    instant: Annotated[str | None, "The instant that wrote it; NULL if it had no rows."]
    rows: int
    started: Annotated[int | None, "The batch under way, or left by a process that died."]
    started_instant: str | None
    taken_back: Annotated[int, "How many batches a rollback or restore has removed."]
    query: Annotated[str | None, "The identity of the query in its checkpoint."]
    checkpoint: str | None
    writer: Annotated[str, "The process that wrote last."]
    at: datetime | None
    age_seconds: float | None


@procedure("show_streams")
class ShowStreams(Call):
    """The streams that write to a table, and the newest batch of each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    Row = StreamRow

    def run(self, caller: Caller) -> Iterable[StreamRow]:
        return map(_row, open_table(caller, self.table, self.path).streams())


@procedure("forget_stream", is_mutating=True)
class ForgetStream(Call):
    """Forget a stream: its rows stay, and its next batch is taken for the first one."""

    table: TableName = None
    stream: Annotated[str, "Its name."]
    path: TablePath = None
    force: Annotated[bool, "Cancel a batch that is under way."] = False
    dry_run: DryRun = False

    Row = StreamRow

    def run(self, caller: Caller) -> Iterable[StreamRow]:
        table = open_table(caller, self.table, self.path)
        yield _row(table.forget_stream(self.stream, force=self.force, dry_run=self.dry_run))


def _row(one: StreamView) -> StreamRow:
    return StreamRow(
        stream=one.stream,
        batch=one.batch,
        instant=one.instant,
        rows=one.rows,
        started=one.started,
        started_instant=one.started_instant,
        taken_back=len(one.taken_back),
        query=one.query,
        checkpoint=one.checkpoint,
        writer=one.by,
        at=moment_of(one.at_ms),
        age_seconds=one.age_seconds,
    )
