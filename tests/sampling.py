"""Samples of what is too much for each run: `make test` draws one, `make simulate` takes all.

Which members are drawn depends on the day, so that all of them have their turn within some days.
LAKEWARDEN_DAY replays the sample of another one.
"""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

Member = TypeVar("Member")

IS_SIMULATION = bool({"LAKEWARDEN_KILLS", "LAKEWARDEN_SEEDS"} & set(os.environ))
# The processes that share a run share its day, also over midnight.
DAY = os.environ.setdefault("LAKEWARDEN_DAY", f"{datetime.now(UTC):%Y-%m-%d}")


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
