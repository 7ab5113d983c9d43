"""Steps: when each instant was requested, started and completed; and their export as JSON."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    indexing,
    replace,
    restore,
    rollback,
    savepoint,
)
from lakewarden.engine.formats.instant_metadata.binding import record_of
from lakewarden.engine.formats.json_text import format_json
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, Unsettled
from lakewarden.engine.services.inspection.history.history import EVER, History, Recorded, TimeSpan
from lakewarden.engine.storage.port import Lost, Storage, Unknown
from lakewarden.engine.timeline.instants.instant import Action, Instant, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """An instant with the moments of its states; None for one that is not known.

    When it was started is known of active instants only, from the time of the file that says so.
    """

    instant: Instant
    is_archived: bool
    requested_ms: int | None
    inflight_ms: int | None
    completed_ms: int | None
    rollback: str | None


def steps(history: History, span: TimeSpan = EVER, *, archived: bool = False) -> Iterator[Steps]:
    """The instants of a span, newest first, one for each in the state it has come to."""
    rollbacks = _rollbacks(history, span, archived=archived)
    for instant, is_archived in history.instants(span, archived=archived):
        files = None if is_archived else history.timeline.active.files_of(instant)
        started = None if files is None else files.in_state(State.INFLIGHT)
        yield Steps(
            instant=instant,
            is_archived=is_archived,
            requested_ms=history.epoch_ms(instant.requested),
            inflight_ms=None if started is None else started.entry.modified_ms,
            completed_ms=history.epoch_ms(instant.completed),
            rollback=rollbacks.get(instant.key),
        )


def _rollbacks(
    history: History, span: TimeSpan, *, archived: bool
) -> Mapping[tuple[str, str], str]:
    """What rollbacks say of themselves, and of the instants that they undo."""
    said: dict[tuple[str, str], str] = {}
    for recorded in history.planned((Action.ROLLBACK,)):
        if not recorded.instant.is_completed:
            _note(said, recorded, "Will roll back", "Will be rolled back by", _planned(recorded))
    since = TimeSpan(span.since)
    # Whatever undoes an instant comes after it, perhaps after the span.
    for recorded in history.completed((Action.ROLLBACK,), since, archived=archived):
        _note(said, recorded, "Rolled back", "Rolled back by", _undone(recorded))
    return said


def _note(
    said: dict[tuple[str, str], str],
    recorded: Recorded,
    did: str,
    done_by: str,
    undone: tuple[rollback.InstantReference, ...] | CorruptTable,
) -> None:
    if isinstance(undone, CorruptTable):
        said[recorded.instant.key] = f"Unreadable: {undone.why}"
        return
    said[recorded.instant.key] = f"{did} {', '.join(one.commit_time for one in undone)}".rstrip()
    for one in undone:
        said[one.commit_time, _completed_word(one.action)] = (
            f"{done_by} {recorded.instant.requested}"
        )


def _planned(recorded: Recorded) -> tuple[rollback.InstantReference, ...] | CorruptTable:
    try:
        target = rollback.decode_plan(recorded.content, recorded.path).instant_to_rollback
    except CorruptTable as error:
        return error
    return () if target is None else (target,)


def _undone(recorded: Recorded) -> tuple[rollback.InstantReference, ...] | CorruptTable:
    try:
        return rollback.decode(recorded.content, recorded.path).instants_rollback
    except CorruptTable as error:
        return error


def _completed_word(word: str) -> str:
    """The action as instants are known by, whichever one a rollback names."""
    try:
        return Action(word).completed_as.value
    except ValueError:
        return word


_DECODERS: Mapping[Action, Callable[[bytes, str], object]] = {
    Action.COMMIT: commit.decode,
    Action.DELTA_COMMIT: commit.decode,
    Action.REPLACE_COMMIT: replace.decode,
    Action.CLEAN: clean.decode,
    Action.ROLLBACK: rollback.decode,
    Action.RESTORE: restore.decode,
    Action.SAVEPOINT: savepoint.decode,
    Action.INDEXING: indexing.decode,
}
EXPORTED_ACTIONS = tuple(_DECODERS)


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written, or is to be."""

    instant: str
    name: str
    size_bytes: int


def export(
    history: History,
    target: Storage,
    actions: Collection[Action] = EXPORTED_ACTIONS,
    *,
    limit: int | None = None,
    newest_first: bool = False,
    dry_run: bool = False,
) -> Iterator[Exported]:
    """Write the metadata of completed instants, active and archived, a file for each."""
    found = history.completed(actions, EVER, archived=True)
    if not newest_first:
        found = iter(list(found)[::-1])
    for recorded in islice(found, limit):
        name = f"{recorded.instant.requested}.{recorded.instant.action.value}.json"
        content = format_json(record_of(_value(recorded))) + b"\n"
        if not dry_run:
            _write(target, name, content)
        yield Exported(recorded.instant.requested, name, len(content))


def _value(recorded: Recorded) -> object:
    return _DECODERS[recorded.instant.action](recorded.content, recorded.path)


def _write(target: Storage, name: str, content: bytes) -> None:
    match target.create_exclusive(name, content):
        case Lost(there) if there != content:
            raise Conflict(
                "file_exists",
                what=f"{target.uri(name)} already exists with different content.",
                why="An export never replaces a file.",
                now="Choose an empty folder, or remove the file.",
                path=name,
            )
        case Unknown(cause):
            raise Unsettled(
                "unsettled_export",
                what=f"It is not known whether {target.uri(name)} was written.",
                why=cause,
                now="Look at the folder, then export again.",
                path=name,
            )
