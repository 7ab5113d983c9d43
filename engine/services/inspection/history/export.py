"""Export: what instants say, as JSON files in a folder; a file that is there is never replaced."""

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
from lakewarden.engine.kernel.errors import Conflict, Unsettled
from lakewarden.engine.services.inspection.history.history import EVER, History, Recorded
from lakewarden.engine.storage.port import Lost, Storage, Unknown
from lakewarden.engine.timeline.instants.instant import Action

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
