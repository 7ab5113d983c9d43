"""Streams: what is known of those that write to a table, and how one is forgotten."""

from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.timeline.ledger.streams import (
    StreamEntry,
    StreamLedger,
    append_to_stream,
    read_stream,
    read_streams,
)
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.context import Context, load_for_display, load_for_writing
from lakewarden.engine.transaction.state.ledger_end import this_process
from lakewarden.engine.transaction.state.pending_instants import age_seconds
from lakewarden.engine.write.streams import Turn, turn_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamView(Shown):
    """A stream and its newest batch that is in the table."""

    stream: str
    # None where no batch is in the table.
    batch: int | None
    # None where the batch had no rows.
    instant: str | None
    rows: int
    # The batch that is under way, or was left.
    started: int | None
    started_instant: str | None
    # Batches that a rollback or restore has taken back out of the table.
    taken_back: tuple[int, ...]
    query: str | None
    checkpoint: str | None
    by: str
    at_ms: int
    age_seconds: float | None


def stream_views(context: Context) -> tuple[StreamView, ...]:
    """The streams of a table, by their names; nothing is put in order by looking."""
    ledgers = read_streams(context.storage)
    if not ledgers:
        return ()
    snapshot = load_for_display(context)
    turns = (turn_of(context, ledger).seen(snapshot) for ledger in ledgers)
    return tuple(_stream_view(context, turn) for turn in turns)


def _stream_view(context: Context, turn: Turn) -> StreamView:
    entry = turn.ledger.known
    assert entry is not None
    newest = turn.done[-1] if turn.done else None
    started = None if entry.started in (*turn.done, *turn.lost) else entry.started
    return StreamView(
        stream=entry.stream,
        batch=None if newest is None else newest.number,
        instant=None if newest is None else newest.instant or None,
        rows=0 if newest is None else newest.rows,
        started=None if started is None else started.number,
        started_instant=None if started is None else started.instant,
        taken_back=tuple(one.number for one in turn.lost),
        query=entry.query or None,
        checkpoint=entry.checkpoint or None,
        by=entry.by,
        at_ms=entry.at_ms,
        age_seconds=age_seconds(context, entry.at_ms),
    )


def forget_stream(
    context: Context, stream: str, *, force: bool = False, dry_run: bool = False
) -> StreamView:
    """Forget a stream, so that its next batch is taken for the first one; what was known of it.

    Steps of `stream-forget`: read, cancel, append. A batch that is under way is refused, and
    cancelled with `force`. What the stream has written stays.
    """
    ledger = read_stream(context.storage, stream)
    entry = ledger.known
    if entry is None:
        raise _unknown(context, stream)
    snapshot = load_for_writing(context)
    turn = turn_of(context, ledger)
    view = _stream_view(context, turn.seen(snapshot))
    pending = entry.started is not None and snapshot.pending(entry.started.instant) is not None
    if dry_run:
        return view
    if pending:
        assert entry.started is not None
        cancel(context, entry.started.instant, f"the stream {stream!r} is forgotten", force=force)
    _append_forgotten(context, ledger, entry)
    return view


def _append_forgotten(context: Context, ledger: StreamLedger, entry: StreamEntry) -> None:
    forgotten = replace(
        entry,
        owner=context.ports.ids.fresh(),
        by=this_process(context),
        at_ms=context.now_ms(),
        done=(),
        started=None,
        is_forgotten=True,
    )
    now = append_to_stream(context.storage, ledger, forgotten)
    if now.entry != forgotten:
        raise Conflict(
            "stream_overtaken",
            what=f"The stream {ledger.stream!r} was not forgotten.",
            why="A batch of it has started meanwhile.",
            now="Stop the query that writes it, then forget it.",
            stream=ledger.stream,
        )


def _unknown(context: Context, stream: str) -> InvalidRequest:
    known = ", ".join(repr(one.stream) for one in read_streams(context.storage)[:5])
    return InvalidRequest(
        "unknown_stream",
        what=f"The table has no stream {stream!r:.80}.",
        why=f"It has {known or 'none'}.",
        now="CALL show_streams lists them.",
        stream=stream,
    )
