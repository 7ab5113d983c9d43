"""Instants: an action on the timeline at a requested time, in one of three states."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar

from lakewarden.engine.kernel.zones import Zone

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
        return _COMPLETED_AS.get(self, self)

    @property
    def is_write(self) -> bool:
        """Whether it changes which rows or files the table has by writing data files."""
        return self.completed_as in COMPLETED_WRITES


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}

COMPLETED_WRITES = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


class State(Enum):
    """How far an instant has come, in the order of their values."""

    REQUESTED = 1
    INFLIGHT = 2
    COMPLETED = 3


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
        return self.requested, self.action.completed_as.value

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
