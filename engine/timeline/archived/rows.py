"""Rows of the archived timeline: completed instants in a Parquet file, sorted by instant.

The archived timeline of version 6: log files with one record for each state of an instant, read and
written.

File names say nothing about the contents, so every reader reads all files. Contents are stored in
the records as Avro values; they are handed out as the files that later versions would have.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.formats.avro.container import encode_record
from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    compaction,
    indexing,
    replace,
    rollback,
    savepoint,
)
from lakewarden.engine.formats.instant_metadata.binding import record_of, schema_text, value_of
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.formats.log.write import BlockOrigin, record_block
from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage
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


ENTRIES_FILE = re.compile(r"\.commits_\.archive\.([0-9]+).*")
_TIME_COLUMNS = ("commitTime", "actionType", "actionState", "stateTransitionTime")
_Encode = Callable[[Any], bytes]

_METADATA: Mapping[str, tuple[type, _Encode]] = {
    "hoodieCommitMetadata": (commit.CommitMetadata, commit.encode),
    "hoodieReplaceCommitMetadata": (replace.ReplaceCommitMetadata, replace.encode),
    "hoodieCleanMetadata": (clean.CleanMetadata, clean.encode),
    "hoodieRollbackMetadata": (rollback.RollbackMetadata, rollback.encode),
    "hoodieSavePointMetadata": (savepoint.SavepointMetadata, savepoint.encode),
    "hoodieIndexCommitMetadata": (indexing.IndexMetadata, indexing.encode),
}
_PLANS: Mapping[str, tuple[type, _Encode]] = {
    "hoodieCompactionPlan": (compaction.CompactionPlan, compaction.encode_plan),
    "hoodieCleanerPlan": (clean.CleanPlan, clean.encode_plan),
    "HoodieInflightReplaceMetadata": (commit.CommitMetadata, commit.encode),
    "hoodieRequestedReplaceMetadata": (replace.RequestedReplace, replace.encode_plan),
}


class LogArchive:
    """The archive in a folder, read when it is first asked."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder

    def instants(self, since: str | None = None, until: str | None = None) -> tuple[Instant, ...]:
        """The instants requested from `since` to `until`, both included, in their order."""
        return tuple(
            instant
            for instant in self._instants
            if (since is None or instant.requested >= since)
            and (until is None or instant.requested <= until)
        )

    def completion_time(self, requested: str) -> str | None:
        """When an archived instant completed; None when it is not in the archive."""
        for instant in self.instants(requested, requested):
            if instant.action is not Action.SAVEPOINT:
                return instant.completed
        return None

    def read(self, instant: Instant) -> ArchivedInstant | None:
        """An instant with its contents; None when it is not in the archive."""
        times = instant.requested, instant.requested
        rows = self.rows((instant.action.completed_as,), *times)
        return next((row for row in rows if row.instant.key == instant.key), None)

    def completed_after(self, time: str, moment_ms: int | None) -> tuple[Instant, ...]:
        """The instants completed after a time; all is read, whatever moment that is."""
        return tuple(one for one in self._instants if (one.completed or "") > time)

    def rows(
        self, actions: Collection[Action], since: str | None = None, until: str | None = None
    ) -> Iterator[ArchivedInstant]:
        """Instants of some actions with their contents, newest first; all files are read once."""
        wanted = {one.key: one for one in self.instants(since, until) if one.action in actions}
        contents: dict[tuple[str, str], ArchivedInstant] = {}
        for path, record in self._records((*_TIME_COLUMNS, *_METADATA, *_PLANS)):
            found = _decode_instant(record, path)
            instant = wanted.get(found.key)
            if instant is not None:
                known = contents.get(instant.key, ArchivedInstant(instant))
                contents[instant.key] = _with_content(known, found, record, path)
        yield from (contents[key] for key in sorted(wanted, reverse=True))

    @lazy
    def _instants(self) -> tuple[Instant, ...]:
        found = (_decode_instant(record, path) for path, record in self._records(_TIME_COLUMNS))
        completed = {instant.key: instant for instant in found if instant.is_completed}
        return tuple(completed[key] for key in sorted(completed))

    def _records(self, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, object]]]:
        for entry in self._storage.list(self._folder).files:
            if ENTRIES_FILE.fullmatch(entry.name) is None:
                continue
            for block in read_blocks(self._storage.read(entry.path), entry.path):
                if block.kind is BlockKind.AVRO:
                    for record in _as_records(records(block, columns), entry.path):
                        yield entry.path, record


def _as_records(table: pa.Table, path: str) -> list[dict[str, object]]:
    try:
        found: list[dict[str, object]] = table.to_pylist(maps_as_pydicts="strict")
    except KeyError as error:
        raise corrupt(path, None, f"A map has the key {error} twice.") from error
    return found


def _decode_instant(record: Mapping[str, object], path: str) -> Instant:
    requested, word = record.get("commitTime"), record.get("actionType")
    # Very old archives have completed instants only, and say no state.
    state = record.get("actionState") or State.COMPLETED.name
    try:
        action, reached = Action(word), State[str(state)]
    except (ValueError, KeyError):
        raise corrupt(path, None, f"It has a {word!r:.40} in state {state!r:.40}.") from None
    if not isinstance(requested, str) or not requested:
        raise corrupt(path, None, "A record has no instant.")
    if reached is not State.COMPLETED:
        return Instant(requested, action, reached)
    completed = record.get("stateTransitionTime") or requested
    return Instant(requested, action.completed_as, State.COMPLETED, str(completed))


def _with_content(
    known: ArchivedInstant, found: Instant, record: Mapping[str, object], path: str
) -> ArchivedInstant:
    """An instant with what one more record says of it: its metadata, or its plan."""
    if found.is_completed:
        return ArchivedInstant(known.instant, _content(record, _METADATA, path), known.plan)
    plan = _content(record, _PLANS, path) or known.plan
    return ArchivedInstant(known.instant, known.metadata, plan)


def _content(
    record: Mapping[str, object], kinds: Mapping[str, tuple[type, _Encode]], path: str
) -> bytes | None:
    for column, (kind, encode) in kinds.items():
        found = record.get(column)
        if found is not None:
            return encode(value_of(kind, found, path))
    return None


_ENTRY_SCHEMA = schema_text("archived_entry")
# The schema in the head of a file begins with its name.
_NAMED_WITHIN = 256
# Where the metadata of an instant stands that has completed, by what it has completed as.
_COLUMNS: Mapping[Action, tuple[str, Callable[[bytes, str], object]]] = {
    Action.COMMIT: ("hoodieCommitMetadata", commit.decode),
    Action.DELTA_COMMIT: ("hoodieCommitMetadata", commit.decode),
    Action.REPLACE_COMMIT: ("hoodieReplaceCommitMetadata", replace.decode),
    Action.CLEAN: ("hoodieCleanMetadata", clean.decode),
    Action.ROLLBACK: ("hoodieRollbackMetadata", rollback.decode),
    Action.SAVEPOINT: ("hoodieSavePointMetadata", savepoint.decode),
    Action.INDEXING: ("hoodieIndexCommitMetadata", indexing.decode),
}


def encode_entries(rows: Iterable[ArchivedInstant]) -> bytes:
    """The log file of archived instants: a record for each of their states, as Java archives them.

    Of what has no place there, as the contents of restores, the record says that it was.
    """
    entries = [entry for row in rows for entry in _entries(row)]
    encoded = [encode_record(entry, _ENTRY_SCHEMA) for entry in entries]
    # Java gives its blocks no instant.
    return record_block(encoded, BlockOrigin(None, _ENTRY_SCHEMA))


def _entries(row: ArchivedInstant) -> Iterator[dict[str, object]]:
    instant, path = row.instant, f"the archived {row.instant}"
    begun = _begun(row.plan, instant.action, path)
    for state in State:
        entry: dict[str, object] = {
            "commitTime": instant.requested,
            "actionType": instant.action.value,
            "actionState": state.name,
            "stateTransitionTime": instant.completed if state is State.COMPLETED else None,
            **begun.get(state, {}),
        }
        if state is State.COMPLETED and row.metadata and instant.action in _COLUMNS:
            column, decode = _COLUMNS[instant.action]
            entry[column] = record_of(decode(row.metadata, path))
        if state is State.REQUESTED and "hoodieCompactionPlan" in entry:
            entry["actionType"] = Action.COMPACTION.value
        yield entry


def _begun(
    plan: bytes | None, action: Action, path: str
) -> Mapping[State, Mapping[str, dict[str, object]]]:
    """What an instant said when it began; a replace commit may have announced a write."""
    if not plan:
        return {}
    if action is Action.CLEAN:
        return {State.REQUESTED: {"hoodieCleanerPlan": record_of(clean.decode_plan(plan, path))}}
    if action is not Action.REPLACE_COMMIT:
        found = record_of(compaction.decode_plan(plan, path))
        return {State.REQUESTED: {"hoodieCompactionPlan": found}}
    if plan[:1] == b"{" or b"HoodieRequestedReplaceMetadata" not in plan[:_NAMED_WITHIN]:
        said = record_of(commit.decode(plan, path))
        return {State.INFLIGHT: {"HoodieInflightReplaceMetadata": said}}
    asked = record_of(replace.decode_plan(plan, path))
    return {State.REQUESTED: {"hoodieRequestedReplaceMetadata": asked}}
