"""Side by side: what clients of one table were told has an order that explains every read.

`make test` plays a sample that is drawn from the date; LAKEWARDEN_RACES says how many,
LAKEWARDEN_SEED which one, with all of its steps.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from tests.histories.remembered import remembering
from tests.side_by_side.race import Race, RaceKind
from tests.simulation.campaign import CHOSEN, Campaign
from tests.simulation.locks import LockKind

RACES = int(os.environ.get("LAKEWARDEN_RACES", "20"))
PER_TEST = 10
FIRST = int(CHOSEN or f"{datetime.now(UTC):%Y%m%d}000")
KINDS = [RaceKind(LockKind.KEPT)]
CAMPAIGNS = [
    Campaign(kind.name, partial(Race, kind), range(start, start + (1 if CHOSEN else PER_TEST)))
    for kind in KINDS
    for start in ([FIRST] if CHOSEN else range(FIRST, FIRST + RACES, PER_TEST))
]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=str)
def test_what_was_acknowledged_has_an_order(
    campaign: Campaign, record_property: Callable[[str, object], None]
) -> None:
    with remembering():
        campaign.run(record_property)


@pytest.mark.parametrize("seed", [66, 100, 108])
def test_who_lost_the_lock_has_spoilt_nothing(seed: int) -> None:
    """Seeds that have found something: an instant settled twice, a file written over."""
    Race(RaceKind(LockKind.LEASED), seed).play()
