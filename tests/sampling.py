"""Samples of what is too much for each run: `make test` draws one, `make test-all` takes all.

Which members are drawn depends on the day, so that all of them have their turn within some days.
LAKEWARDEN_DAY replays the sample of another one.
"""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

Member = TypeVar("Member")
Kind = TypeVar("Kind")

# `make simulate` sets the former two, `make test-all` the last.
IS_SIMULATION = bool({"LAKEWARDEN_KILLS", "LAKEWARDEN_SEEDS", "LAKEWARDEN_ALL"} & set(os.environ))
# The processes that share a run share its day, also over midnight.
DAY = os.environ.setdefault("LAKEWARDEN_DAY", f"{datetime.now(UTC):%Y-%m-%d}")

# Tests that start a JVM of their own, or a compiler, share the days between them.
TURNS = 3


def sample(
    members: Sequence[Member], every: int, *, day: str = DAY, is_simulation: bool = IS_SIMULATION
) -> Sequence[Member]:
    """One in `every` of the members; at least one, and another one the next day.

    Members often come in twos and threes: let `every` be a prime above three, so that each sort is
    among those drawn.
    """
    if is_simulation:
        return members
    drawn = members[date.fromisoformat(day).toordinal() % every :: every]
    return drawn or members[:1]


def turns(
    members: Sequence[Member],
    kinds: Sequence[Kind],
    *,
    day: str = DAY,
    is_simulation: bool = IS_SIMULATION,
) -> Sequence[tuple[Member, Kind]]:
    """Each member with one of the kinds, and with the next one the next day."""
    if is_simulation:
        return [(member, kind) for member in members for kind in kinds]
    first = date.fromisoformat(day).toordinal()
    return [(one, kinds[at % len(kinds)]) for at, one in enumerate(members, start=first)]


def is_due(turn: int, *, day: str = DAY, is_simulation: bool = IS_SIMULATION) -> bool:
    """Whether a test marked `by_turns(turn)` runs on this day, which is each third one."""
    return is_simulation or date.fromisoformat(day).toordinal() % TURNS == turn
