"""Layouts: where the timeline of a table version lies, and how instants are named there.

Layout 1 (version 6) keeps instants in `.hoodie`, and a completed one has no completion time in its
name: the file's modification time stands for it. Layout 2 (versions 8 and 9) has a folder of its
own. Files with other names are not ours and are ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.zones import LOCAL, UTC, Zone
from lakewarden.engine.storage.border import check_timeline_folder
from lakewarden.engine.storage.port import Entry
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, time_text

HOODIE_FOLDER = ".hoodie"

_NAME = re.compile(
    r"(?P<requested>[0-9]+)(?:_(?P<completed>[0-9]+))?\.(?P<action>[a-z]+)"
    r"(?:\.(?P<state>requested|inflight))?"
)
_LAYOUT_2_TABLES = ("8", "9")

# An empty file that makes a folder of the place it is in; everybody passes over it.
FOLDER_KEEPER = ".keep"
_ACTIONS = {action.value: action for action in Action}
_PENDING = {"requested": State.REQUESTED, "inflight": State.INFLIGHT}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the timeline of a table is laid out; folders are relative to the table's root."""

    version: int
    folder: str
    history_folder: str
    zone: Zone

    def parse(self, entry: Entry) -> Instant | None:
        """The instant a file stands for; None for a file that is none of the timeline's."""
        match = _NAME.fullmatch(entry.name)
        if match is None:
            return None
        requested, completed, word, state = match.groups()
        if word == "inflight" and state is None and completed is None:
            # Only a plain commit leaves the action out.
            return Instant(requested, Action.COMMIT, State.INFLIGHT)
        action = _ACTIONS.get(word)
        if action is None:
            return None
        if state is not None:
            return None if completed else Instant(requested, action, _PENDING[state])
        return self._completed(requested, completed, action, entry)

    def _completed(
        self, requested: str, completed: str | None, action: Action, entry: Entry
    ) -> Instant | None:
        if completed is not None and self.version == 1:
            return None
        # An instant from before an upgrade may be left without its completion time in layout 2.
        completed = completed or time_text(entry.modified_ms, self.zone)
        return Instant(requested, action, State.COMPLETED, completed)

    def file_name(self, instant: Instant) -> str:
        """The name of the file that stands for an instant in its state."""
        requested, action = instant.requested, instant.action
        match instant.state:
            case State.REQUESTED:
                return f"{requested}.{action.value}.requested"
            case State.INFLIGHT if action is Action.COMMIT:
                return f"{requested}.inflight"
            case State.INFLIGHT:
                return f"{requested}.{action.value}.inflight"
            case State.COMPLETED if self.version == 1:
                return f"{requested}.{action.completed_as.value}"
            case State.COMPLETED:
                return f"{requested}_{instant.completed}.{action.completed_as.value}"

    def path(self, instant: Instant) -> str:
        return f"{self.folder}/{self.file_name(instant)}"


def _folder(properties: Mapping[str, str], key: str, default: str) -> str:
    folder = properties.get(key, default)
    if folder:
        check_timeline_folder(folder, f"{key} in {HOODIE_FOLDER}/hoodie.properties")
    return folder


def layout_of(properties: Mapping[str, str], *, local_zone: Zone = LOCAL) -> Layout:
    """The layout a table's properties ask for; an unknown one is refused.

    The local zone is that of the table's writers, when it is not the one of this machine.
    """
    is_utc = properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"
    zone = UTC if is_utc else local_zone
    default = "2" if properties.get("hoodie.table.version") in _LAYOUT_2_TABLES else "1"
    match properties.get("hoodie.timeline.layout.version", default):
        case "1":
            history = _folder(properties, "hoodie.archivelog.folder", "archived")
            return Layout(1, HOODIE_FOLDER, f"{HOODIE_FOLDER}/{history}".rstrip("/"), zone)
        case "2":
            folder = f"{HOODIE_FOLDER}/{_folder(properties, 'hoodie.timeline.path', 'timeline')}"
            history = _folder(properties, "hoodie.timeline.history.path", "history")
            return Layout(2, folder, f"{folder}/{history}", zone)
        case other:
            raise InvalidRequest(
                "unsupported_timeline_layout",
                what=f"Lakewarden does not implement the timeline layout {other!r}.",
                why="It would misread or corrupt instants in an unknown layout.",
                now="Use layout 1 or 2, or a newer Lakewarden.",
                layout=other,
            )
