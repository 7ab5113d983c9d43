"""The archived timeline of version 6: log files with one record for each state of an instant.

File names say nothing about the contents, so every reader reads all files. Contents are stored in
the records as Avro values; they are handed out as the files that later versions would have.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    compaction,
    indexing,
    replace,
    rollback,
    savepoint,
)
from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.records import records
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.kernel.lazy import lazy
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.instants.instant import Action, Instant, State

_FILE_NAME = re.compile(r"\.commits_\.archive\.([0-9]+).*")
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
            found = _instant(record, path)
            instant = wanted.get(found.key)
            if instant is not None:
                known = contents.get(instant.key, ArchivedInstant(instant))
                contents[instant.key] = _with_content(known, found, record, path)
        yield from (contents[key] for key in sorted(wanted, reverse=True))

    @lazy
    def _instants(self) -> tuple[Instant, ...]:
        found = (_instant(record, path) for path, record in self._records(_TIME_COLUMNS))
        completed = {instant.key: instant for instant in found if instant.is_completed}
        return tuple(completed[key] for key in sorted(completed))

    def _records(self, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, object]]]:
        for entry in self._storage.list(self._folder).files:
            if _FILE_NAME.fullmatch(entry.name) is None:
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


def _instant(record: Mapping[str, object], path: str) -> Instant:
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
