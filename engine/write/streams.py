"""The turn of a batch in its stream: whether it is to be written, and that it is written once.

What is compared are names, numbers and keys, never times. Whatever does not follow from what the
table has is refused by name: a missing batch is lost, one written twice is doubled.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc
import xxhash

from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.octets import large_binary, octets_of
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.events import Event, Figures
from lakewarden.engine.metadata.reading.key_cache import Lookups
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.timeline.ledger.streams import (
    RECENT_MAX,
    Batch,
    StreamEntry,
    StreamLedger,
    append_to_stream,
    read_stream,
    read_streams,
)
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.transaction.cancel.cancel import acknowledge
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.ledger_end import this_process
from lakewarden.engine.write.request import Commit, Effect, StreamBatch

# The key in the extra metadata of a batch's commit.
STREAM_KEY = "lakewarden.stream"
_NAME_MAX = 200

# How callers name the batch of a stream that a write is.
Stream: TypeAlias = StreamBatch | tuple[str, int] | None


def stream_batch(given: StreamBatch | tuple[str, int]) -> StreamBatch:
    """The batch that a caller names, checked."""
    batch = given if isinstance(given, StreamBatch) else _named(given)
    if not 0 < len(batch.stream) <= _NAME_MAX or batch.number < 0:
        raise _bad_stream(given)
    return batch


def _named(given: object) -> StreamBatch:
    match given:
        case (str() as stream, int() as number) if not isinstance(number, bool):
            return StreamBatch(stream=stream, number=number)
    raise _bad_stream(given)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells the rows of a batch from others, in whatever order they come."""

    rows: int
    digest: str = ""

    @classmethod
    def of(cls, rows: KeyedRows, *, has_keys: bool) -> "Fingerprint":
        """By their keys, where these are the rows' own and not made by the write."""
        if not has_keys:
            return cls(len(rows))
        keys = rows.keys.take(pc.array_sort_indices(rows.keys))
        octets, bounds = octets_of(large_binary(keys))
        found = xxhash.xxh3_128(int(rows.is_delete.sum()).to_bytes(8, "little"))
        found.update(np.diff(bounds).tobytes())
        found.update(octets[bounds[0] : bounds[-1]].tobytes())
        return cls(len(rows), found.hexdigest())


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The turn of one batch, by what its stream's ledger said before the table was loaded.

    Steps of `stream`: read, end, judge, skip, begin.
    """

    context: Context
    batch: StreamBatch
    ledger: StreamLedger
    # Those that are in the table, oldest first, and those that were taken back out of it.
    done: tuple[Batch, ...] = ()
    lost: tuple[Batch, ...] = ()
    # Of the rows that have come.
    found: Fingerprint = Fingerprint(0)

    def left_pending(self, snapshot: Snapshot) -> bool:
        """Whether the instant that was started last was pending; then it is ended one way or other.

        Step `stream.end`. The table has to be loaded again after it.
        """
        started = None if self.ledger.known is None else self.ledger.known.started
        if started is None or snapshot.pending(started.instant) is None:
            return False
        reason = f"batch {self.batch.number} of the stream {self.batch.stream!r} begins anew"
        try:
            acknowledge(self.context, started.instant, reason)
        except Conflict as error:
            if error.code == "instant_held":
                raise _busy(self.batch, started.instant) from error
            raise
        return True

    def settled(self, snapshot: Snapshot) -> "Turn":
        """The turn with what is in the table; refused by name where it is not this batch's.

        Step `stream.judge`.
        """
        known = self.ledger.known
        if known is None:
            self._refuse_renamed()
            return self
        _refuse_other(self.batch, known)
        turn = self.seen(snapshot)
        turn._refuse_gap(known)
        return turn

    def seen(self, snapshot: Snapshot) -> "Turn":
        """The turn with those of the known batches that are in the table, and those that are not.

        A batch that was started and never committed is neither.
        """
        known = self.ledger.known
        if known is None:
            return self
        done, started = known.done, known.started
        if started is not None and is_there(snapshot.timeline, started.instant):
            done = (*done, started)
        there = _there(snapshot.timeline, done)
        return replace(self, done=done[:there], lost=done[there:])

    def of_rows(self, rows: KeyedRows, config: TableConfig) -> "Turn":
        """The turn with the rows of the batch, as they came."""
        return replace(self, found=Fingerprint.of(rows, has_keys=bool(config.key_fields)))

    def earlier(self, snapshot: Snapshot, operation: str) -> Commit | None:
        """What this very batch has done before, if it was committed; other rows are refused."""
        same = next((one for one in self.done if one.number == self.batch.number), None)
        if same is None:
            return None
        if self.found != Fingerprint(same.rows, same.digest):
            raise _other_rows(self.batch, same, self.found)
        if not same.instant:
            return Commit(instant=None, completed=None, operation=operation, is_repeated=True)
        return _commit_of(snapshot, same, operation)

    def skip(self) -> None:
        """Step `stream.skip`: a batch without rows needs no instant, and counts all the same."""
        self._append((*self.done, self._as_batch())[-RECENT_MAX:], None)

    def begin(self, instant: str) -> None:
        """Step `stream.begin`: from here on only this instant can commit the batch."""
        self._append(self.done[-RECENT_MAX:], self._as_batch(instant))

    def said(self, effect: Effect) -> Mapping[str, str]:
        """What the commit says of the batch: for people, and for a batch that comes again."""
        said = {"name": self.batch.stream, "batch": self.batch.number, "query": self.batch.query}
        return {STREAM_KEY: json.dumps(said | asdict(self.found) | asdict(effect))}

    def reported(self, commit: Commit, lookups: Lookups) -> Commit:
        """The commit with its lookups, once an event, and so the log, has said it all."""
        named: Figures = {"stream": self.batch.stream, "batch": self.batch.number}
        instant = commit.instant or "no instant"
        if commit.is_repeated:
            event = Event("stream_batch_repeated", {**named, "instant": instant})
        else:
            phases = ", ".join(f"{name} {spent:.2f}" for name, spent in commit.seconds.items())
            figures: Figures = {
                "instant": instant,
                "rows": self.found.rows,
                "inserted": commit.rows_inserted,
                "updated": commit.rows_updated,
                "deleted": commit.rows_deleted,
                "seconds": sum(commit.seconds.values()),
                "keys": lookups.asked,
                "keys_found": lookups.found,
                "keys_cached": lookups.cached,
                "phases": phases,
            }
            event = Event("stream_batch", {**named, **figures})
        self.context.ports.events(event)
        if commit.is_repeated:
            return commit
        return replace(
            commit,
            keys_asked=lookups.asked,
            keys_found=lookups.found,
            keys_cached=lookups.cached,
        )

    def _as_batch(self, instant: str = "") -> Batch:
        found, number = self.found, self.batch.number
        return Batch(number=number, instant=instant, rows=found.rows, digest=found.digest)

    def _append(self, done: tuple[Batch, ...], started: Batch | None) -> None:
        known, batch = self.ledger.known, self.batch
        entry = StreamEntry(
            stream=batch.stream,
            query=batch.query or (known.query if known else ""),
            checkpoint=batch.checkpoint or (known.checkpoint if known else ""),
            owner=self.context.ports.ids.fresh(),
            by=this_process(self.context),
            at_ms=self.context.now_ms(),
            first=known.first if known and (done or self.lost) else batch.number,
            done=done,
            started=started,
        )
        now = append_to_stream(self.context.storage, self.ledger, entry)
        if now.entry is None or now.entry.owner != entry.owner:
            raise _overtaken(batch)

    def _refuse_renamed(self) -> None:
        """A query that is known by another name would have its batches written once more."""
        if not self.batch.query:
            return
        for other in read_streams(self.context.storage):
            if other.known is not None and other.known.query == self.batch.query:
                raise _renamed(self.batch, other.stream)

    def _refuse_gap(self, known: StreamEntry) -> None:
        number, started = self.batch.number, known.started
        missing = started if started not in (None, *self.done) else None
        if not self.done and not self.lost:
            # Nothing was ever committed that is known of, but for what was started.
            if started is not None and number > started.number:
                raise _taken_back(self.batch, started)
            return
        missing = missing or (self.lost[-1] if self.lost else None)
        if self.done:
            newest = self.done[-1].number
        elif self.lost[0].number == known.first:
            newest = known.first - 1
        else:
            raise _taken_back(self.batch, self.lost[-1])
        if number > newest + 1:
            raise _taken_back(self.batch, missing) if missing else _gap(self.batch, newest)
        if number <= newest and all(one.number != number for one in self.done):
            raise _too_old(self.batch, newest)


def refuse_depth(depth: int) -> None:
    """Refuse to acknowledge batches before they have committed."""
    if depth:
        raise InvalidRequest(
            "stream_depth",
            what=f"Batches of a stream cannot wait for their commits, {depth} at a time.",
            why="Spark is acknowledged when the table has the batch, which is a depth of 0.",
            now="Leave lakewarden.stream.depth out, or set it to 0.",
            depth=depth,
        )


def read_turn(context: Context, batch: StreamBatch) -> Turn:
    """Step `stream.read`; it comes before the table is loaded, which then shows what it names."""
    return Turn(context, batch, read_stream(context.storage, batch.stream))


def turn_of(context: Context, ledger: StreamLedger) -> Turn:
    """The turn of no batch: for those who only look at a stream."""
    return Turn(context, StreamBatch(stream=ledger.stream, number=0), ledger)


def is_there(timeline: Timeline, instant: str) -> bool:
    """Whether a write is in the table; what was rolled back long ago is not taken for archived."""
    found = timeline.active.with_time(instant)
    writes = [one for one in found if one.action.is_write]
    if writes:
        return any(one.is_completed for one in writes)
    return timeline.archive.completion_time(instant) is not None


def _there(timeline: Timeline, done: tuple[Batch, ...]) -> int:
    """How many of the batches are in the table: others are taken back from the newest on."""
    places = range(len(done), 0, -1)
    newest = (one for one in places if done[one - 1].instant)
    place = next((one for one in newest if is_there(timeline, done[one - 1].instant)), 0)
    # Batches without rows stay with the one before them.
    after = done[place:]
    return place + next((n for n, one in enumerate(after) if one.instant), len(after))


def _commit_of(snapshot: Snapshot, batch: Batch, operation: str) -> Commit:
    """What a commit that is in the table has done, from its metadata."""
    instant, content = _content(snapshot, batch.instant)
    metadata = commit_payload.decode(content, f"the instant {batch.instant}")
    said = json.loads(metadata.extra_metadata.get(STREAM_KEY, "{}"))
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    return Commit(
        instant=batch.instant,
        completed=instant.completed,
        operation=operation,
        rows_written=sum(stat.num_writes for stat in stats),
        rows_inserted=said.get("inserted", 0),
        rows_updated=said.get("updated", 0),
        rows_deleted=said.get("deleted", 0),
        files=len(stats),
        bytes=sum(stat.file_size_in_bytes for stat in stats),
        is_repeated=True,
    )


def _content(snapshot: Snapshot, requested: str) -> tuple[Instant, bytes]:
    active, archive = snapshot.timeline.active, snapshot.timeline.archive
    completed = snapshot.completed_write(requested)
    if completed is not None:
        return completed, active.read(completed)
    instant = next(one for one in archive.instants(requested, requested) if one.action.is_write)
    row = archive.read(instant)
    return instant, (row.metadata if row is not None else None) or b""


def _refuse_other(batch: StreamBatch, known: StreamEntry) -> None:
    if batch.query and known.query and batch.query != known.query:
        raise InvalidRequest(
            "stream_of_other_query",
            what=f"The stream {batch.stream!r} belongs to another query, {known.query}.",
            why="Batches have the same numbers in both, so one would pass for the other's.",
            now="Give this query a name of its own, or forget the stream if it replaces that one.",
            stream=batch.stream,
            query=known.query,
        )
    if batch.checkpoint and known.checkpoint and batch.checkpoint != known.checkpoint:
        raise InvalidRequest(
            "stream_checkpoint_copied",
            what=f"The stream {batch.stream!r} has its checkpoint at {known.checkpoint}.",
            why=f"This query has it at {batch.checkpoint}: two copies go different ways.",
            now="Use the first one. If it was moved for good, forget the stream.",
            stream=batch.stream,
            checkpoint=known.checkpoint,
        )


def _renamed(batch: StreamBatch, name: str) -> InvalidRequest:
    return InvalidRequest(
        "stream_renamed",
        what=f"The stream {batch.stream!r} is new, and its query is known as {name!r}.",
        why="Under another name, batches that are in the table would be written once more.",
        now=f"Use the name {name!r}, or forget that stream.",
        stream=batch.stream,
        known_as=name,
    )


def _other_rows(batch: StreamBatch, known: Batch, found: Fingerprint) -> InvalidRequest:
    differ = "other keys" if found.rows == known.rows else f"{found.rows} rows, not {known.rows}"
    return InvalidRequest(
        "stream_batch_differs",
        what=f"Batch {batch.number} of the stream {batch.stream!r} comes again with {differ}.",
        why="It was committed with other rows, so these would be lost if it were skipped.",
        now="Find out why the source differs. To write them, forget the stream or take a new name.",
        stream=batch.stream,
        batch=batch.number,
    )


def _too_old(batch: StreamBatch, newest: int) -> InvalidRequest:
    return InvalidRequest(
        "stream_batch_too_old",
        what=f"Batch {batch.number} of the stream {batch.stream!r} is older than what is known.",
        why=f"The newest is {newest}; of the last {RECENT_MAX} it is known what was in them.",
        now="Start the query from its newest checkpoint, or forget the stream.",
        stream=batch.stream,
        batch=batch.number,
    )


def _gap(batch: StreamBatch, newest: int) -> InvalidRequest:
    return InvalidRequest(
        "stream_gap",
        what=f"Batch {batch.number} of the stream {batch.stream!r} leaves out batches.",
        why=f"The newest in the table is {newest}, so the rows between them would be missing.",
        now="Start the query from the checkpoint that follows, or forget the stream.",
        stream=batch.stream,
        batch=batch.number,
        newest=newest,
    )


def _taken_back(batch: StreamBatch, lost: Batch) -> InvalidRequest:
    return InvalidRequest(
        "stream_taken_back",
        what=f"Batch {lost.number} of the stream {batch.stream!r} is not in the table any more.",
        why=f"A rollback or restore took {lost.instant or 'it'} back, or it was never committed.",
        now="Start the query from an older checkpoint, or forget the stream to go on without it.",
        stream=batch.stream,
        batch=batch.number,
        lost=lost.number,
    )


def _busy(batch: StreamBatch, instant: str) -> Conflict:
    return Conflict(
        "stream_busy",
        what=f"Another process is writing a batch of the stream {batch.stream!r}, {instant}.",
        why="It is alive, and a stream has one writer at a time.",
        now="Stop one of the two. After a crash elsewhere wait until its heartbeat has expired.",
        stream=batch.stream,
        instant=instant,
    )


def _overtaken(batch: StreamBatch) -> Conflict:
    return Conflict(
        "stream_overtaken",
        what=f"Another process has started a batch of the stream {batch.stream!r} meanwhile.",
        why="A stream has one writer at a time.",
        now="Nothing was changed. Stop one of the two, then write the batch again.",
        stream=batch.stream,
        batch=batch.number,
    )


def _bad_stream(given: object) -> InvalidRequest:
    return InvalidRequest(
        "bad_stream",
        what=f"A batch of a stream cannot be named {given!r:.80}.",
        why=f"It takes a name of 1 to {_NAME_MAX} characters and a number from 0 on.",
        now='Pass stream=("name", batch), as foreachBatch gives the number.',
    )
