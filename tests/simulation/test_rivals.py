"""Rivals, simulated: early conflict detection keeps its promises in any order of storage calls.

A run that fails prints the line that replays it. Of two hundred races some are played with each
kind of rivals; `LAKEWARDEN_SEEDS` says how many.
"""

from collections.abc import Callable
from functools import partial

import pytest

from lakewarden.engine.detection.strategies import Strategy
from tests.simulation.campaign import SEEDS, Campaign, campaigns
from tests.simulation.rivals import RivalKind, Rivalry
from tests.simulation.scheduler import Chances

KINDS = [
    RivalKind((Strategy.SIMPLE,)),
    RivalKind((Strategy.TRANSACTIONAL,)),
    RivalKind((Strategy.ASYNC, Strategy.BLOOM, Strategy.BLOOM_ASYNC)),
    RivalKind((*Strategy, None)),
    RivalKind((*Strategy, None), Chances()),
]
SHARE = 10
CAMPAIGNS = [
    campaign
    for kind in KINDS
    for campaign in campaigns(kind.name, partial(Rivalry, kind), SEEDS // SHARE // len(KINDS))
]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=str)
def test_promises_hold(campaign: Campaign, record_property: Callable[[str, object], None]) -> None:
    campaign.run(record_property)
