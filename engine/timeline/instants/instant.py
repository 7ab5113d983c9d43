"""Instants: an action on the timeline at a requested time, in one of three states.

Layouts: where the timeline of a table version lies, and how instants are named there.

Layout 1 (version 6) keeps instants in `.hoodie`, and a completed one has no completion time in its
name: the file's modification time stands for it. Layout 2 (versions 8 and 9) has a folder of its
own. Files with other names are not ours and are ignored.

Creating the files of instants: each state is one file, made once and never changed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import ClassVar

from lakewarden.engine.kernel.clock import LOCAL, UTC, Zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.paths import check_timeline_folder
from lakewarden.engine.storage.port import Creation, Entry, KnownFiles, Storage

_MILLISECONDS_LENGTH = 17
_SECONDS_LENGTH = 14
# Java reads an instant without milliseconds as the last one of its second.
_MISSING_MILLISECONDS = "999"
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})", re.ASCII)


class Action(Enum):
    """What an instant does; the values are the words in file names."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"

    # There is one of each in a process. Enum hashes their names, at every look into a dictionary.
    __hash__ = object.__hash__

    @property
    def completed_as(self) -> "Action":
        """The action under which an instant of this one completes."""
        return _COMPLETED_AS[self]

    @property
    def is_write(self) -> bool:
        """Whether it changes which rows or files the table has by writing data files."""
        return self in _WRITES


_COMPLETED_AS = {action: action for action in Action} | {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
# As texts: to ask a member of an enum for its value takes several times as long.
_COMPLETED_WORDS = {action: done.value for action, done in _COMPLETED_AS.items()}

COMPLETED_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
_WRITES = frozenset(action for action, done in _COMPLETED_AS.items() if done in COMPLETED_WRITES)


class State(Enum):
    """How far an instant has come, in the order of their values."""

    REQUESTED = 1
    INFLIGHT = 2
    COMPLETED = 3

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Instant:
    """An instant in one state; only a completed one has a completion time.

    Sorting is by requested time, then by the action it completes as, then by state.
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("requested", "action", "state", "completed")

    requested: str
    action: Action
    state: State
    completed: str | None = None

    def __post_init__(self) -> None:
        assert (self.completed is not None) == (self.state is State.COMPLETED)

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def key(self) -> tuple[str, str]:
        """What all states of one instant have in common."""
        return self.requested, _COMPLETED_WORDS[self.action]

    def __lt__(self, other: "Instant") -> bool:
        return (self.key, self.state.value) < (other.key, other.state.value)

    def __str__(self) -> str:
        return f"{self.requested} {self.action.value} {self.state.name.lower()}"


def epoch_ms(time: str, zone: Zone) -> int | None:
    """The moment a time of the timeline stands for; None when it is no date.

    The first instants of a metadata table (`00000000000000000` and up) and the bootstrap instants
    are no dates. Digits after the milliseconds, as in the metadata table of version 6, are ignored.
    """
    if len(time) == _SECONDS_LENGTH:
        time += _MISSING_MILLISECONDS
    match = _TIME.fullmatch(time[:_MILLISECONDS_LENGTH])
    if match is None:
        return None
    year, month, day, hour, minute, second, milliseconds = map(int, match.groups())
    try:
        wall = datetime(year, month, day, hour, minute, second, milliseconds * 1000)
        return zone.epoch_ms(wall)
    except (ValueError, OverflowError):
        return None


def time_text(moment_ms: int, zone: Zone) -> str:
    """The time of the timeline for a moment: 17 digits down to the millisecond."""
    wall = zone.wall(moment_ms)
    return f"{wall:%Y%m%d%H%M%S}".zfill(_SECONDS_LENGTH) + f"{wall.microsecond // 1000:03d}"


HOODIE_FOLDER = ".hoodie"

_NAME = re.compile(
    r"(?P<requested>[0-9]+)(?:_(?P<completed>[0-9]+))?\.(?P<action>[a-z]+)"
    r"(?:\.(?P<state>requested|inflight))?"
)
_LAYOUT_2_TABLES = ("8", "9")
# Twice the longest tick of kernels.
_FILE_TICK_SECONDS = 0.02

# An empty file that makes a folder of the place it is in; everybody passes over it.
FOLDER_KEEPER = ".keep"
_ACTIONS = {action.value: action for action in Action}
# A name always says the same: it is taken to pieces once.
_NAMES_KNOWN_MAX = 8_192
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
        said = _said(entry.name)
        if not isinstance(said, _Undated):
            # Layout 1 has no names with a completion time.
            is_strange = self.version == 1 and said is not None and said.is_completed
            return None if is_strange else said
        # An instant from before an upgrade may be left without its completion time in layout 2.
        completed = time_text(entry.modified_ms, self.zone)
        return Instant(said.requested, said.action, State.COMPLETED, completed)

    def names_completion(self, entry: Entry) -> bool:
        """Whether the name of a file says when its instant completed."""
        said = _said(entry.name)
        return self.version > 1 and isinstance(said, Instant) and said.is_completed

    @property
    def has_json(self) -> bool:
        """Whether commits are JSON; what else there is has been Avro from the beginning."""
        return self.version == 1

    @property
    def tick_seconds(self) -> float:
        """How far the clock that gives files their times may be behind that of requested times.

        What others complete after a plan was published must not look older than the plan.
        """
        return _FILE_TICK_SECONDS if self.version == 1 else 0.0

    def modified_ms(self, instant: Instant) -> int | None:
        """When the file of an instant has to be from; None where that means nothing.

        A requested file has a time that is no whole second: a storage that could not date the
        completed file refuses it, before anything is done.
        """
        if self.version > 1 or instant.state is State.INFLIGHT:
            return None
        moment_ms = epoch_ms(instant.completed or instant.requested, self.zone)
        is_probe = instant.state is State.REQUESTED and moment_ms is not None
        return moment_ms + (moment_ms % 1000 == 0) if is_probe and moment_ms else moment_ms

    def file_name(self, instant: Instant) -> str:
        """The name of the file that stands for an instant in its state."""
        requested, action = instant.requested, instant.action
        match instant.state:
            case State.REQUESTED:
                return f"{requested}.{self._word(action)}.requested"
            case State.INFLIGHT if action is Action.COMMIT:
                return f"{requested}.inflight"
            case State.INFLIGHT:
                return f"{requested}.{self._word(action)}.inflight"
            case State.COMPLETED if self.version == 1:
                return f"{requested}.{action.completed_as.value}"
            case State.COMPLETED:
                return f"{requested}_{instant.completed}.{action.completed_as.value}"

    def _word(self, action: Action) -> str:
        """What a pending instant is called; a clustering has a word of its own since layout 2."""
        is_unnamed = self.version == 1 and action is Action.CLUSTERING
        return Action.REPLACE_COMMIT.value if is_unnamed else action.value

    def path(self, instant: Instant) -> str:
        return f"{self.folder}/{self.file_name(instant)}"


@dataclass(frozen=True, slots=True)
class _Undated:
    """A completed instant by a name that does not say when it completed."""

    requested: str
    action: Action


@lru_cache(maxsize=_NAMES_KNOWN_MAX)
def _said(name: str) -> Instant | _Undated | None:
    """What the name of a file says by itself; None for one that is none of a timeline's."""
    match = _NAME.fullmatch(name)
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
    if completed is None:
        return _Undated(requested, action)
    return Instant(requested, action, State.COMPLETED, completed)


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


def create_instant(
    storage: Storage, layout: Layout, instant: Instant, content: bytes = b""
) -> Creation:
    """Create the file of an instant in its state, unless there is one.

    An empty file looks like everybody else's: who creates one and gets `Lost` may have lost to
    itself. A completed instant that has a ledger is published by `roll_forward` alone.
    """
    path, modified_ms = layout.path(instant), layout.modified_ms(instant)
    if modified_ms is None:
        return storage.create_exclusive(path, content)
    return storage.create_dated(path, content, modified_ms)


# The requested time, and the word of the action it completes as.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StateFile:
    """One file of the timeline and the state of an instant it stands for."""

    instant: Instant
    entry: Entry


@dataclass(frozen=True, slots=True)
class InstantFiles:
    """The files of one instant, one for each state at most; at least one is there."""

    requested: StateFile | None
    inflight: StateFile | None
    completed: StateFile | None

    @property
    def instant(self) -> Instant:
        """The instant in its newest state."""
        return (self.completed or self.inflight or self._first).instant

    @property
    def started_as(self) -> Action:
        """The action it began as: a completed commit may have started as a compaction."""
        return self._first.instant.action

    @property
    def _first(self) -> StateFile:
        first = self.requested or self.inflight or self.completed
        assert first is not None
        return first

    def started_by(self, action: Action) -> "InstantFiles":
        """The same files, of an instant that began as another action than its names tell."""
        requested, inflight = (
            None if file is None else replace(file, instant=replace(file.instant, action=action))
            for file in (self.requested, self.inflight)
        )
        return InstantFiles(requested, inflight, self.completed)

    def in_state(self, state: State) -> StateFile | None:
        match state:
            case State.REQUESTED:
                return self.requested
            case State.INFLIGHT:
                return self.inflight
            case State.COMPLETED:
                return self.completed

    def __iter__(self) -> Iterator[StateFile]:
        files = (self.requested, self.inflight, self.completed)
        return (file for file in files if file is not None)


@dataclass(frozen=True, slots=True)
class CompletedFiles:
    """Instants that say in a name when they completed, so that their files stay as they are.

    Of the completed file itself only the name does: a crash, or a writer that has not ended, leaves
    a part of it, and then it becomes whole. Nothing goes by the size that its entry has here.
    """

    groups: Mapping[Key, InstantFiles]
    # All of their files, by path.
    entries: KnownFiles = field(repr=False)

    @classmethod
    def of(cls, layout: Layout, groups: Mapping[Key, InstantFiles]) -> "CompletedFiles":
        """Those of some instants that are settled."""
        chosen = {
            key: files
            for key, files in groups.items()
            if files.completed is not None and layout.names_completion(files.completed.entry)
        }
        return cls(chosen, _entries_of(chosen))

    def among(self, entries: Sequence[Entry]) -> "CompletedFiles":
        """Those of which all files are there still."""
        there = {entry.path for entry in entries}
        if self.entries.keys() <= there:
            return self
        groups = {
            key: files
            for key, files in self.groups.items()
            if all(file.entry.path in there for file in files)
        }
        return CompletedFiles(
            groups, {one.entry.path: one.entry for all_ in groups.values() for one in all_}
        )

    def beside(self, entries: Sequence[Entry]) -> list[Entry]:
        """The files that are not of these."""
        return [entry for entry in entries if entry.path not in self.entries]


def _entries_of(groups: Mapping[Key, InstantFiles]) -> KnownFiles:
    return {file.entry.path: file.entry for files in groups.values() for file in files}


NOTHING_SETTLED = CompletedFiles({}, {})
