"""Rivals, simulated: early conflict detection keeps its promises in any order of storage calls.

A run that fails prints the line that replays it. Of two hundred races some are played with each
kind of rivals; `LAKEWARDEN_SEEDS` says how many.
"""

from collections.abc import Callable
from functools import partial

import pytest

from lakewarden.engine.detection.strategies import Strategy
from tests.simulation.campaign import SEEDS, Campaign, campaigns
from tests.simulation.locks import LockKind
from tests.simulation.plan_rivals import PLANNED, WRITES, PlanRivalry
from tests.simulation.rivals import RivalKind, Rivalry
from tests.simulation.scheduler import Chances, Violation

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


PLAN_RACES = [(plan, write) for plan in PLANNED for write in WRITES]
PLAN_CAMPAIGNS = [
    campaign
    for plan, write in PLAN_RACES
    for campaign in campaigns(
        f"{plan}-{write}", partial(PlanRivalry, plan, write), SEEDS // SHARE // 50
    )
]


@pytest.mark.parametrize("campaign", PLAN_CAMPAIGNS, ids=str)
def test_a_plan_gives_way_to_the_write(
    campaign: Campaign, record_property: Callable[[str, object], None]
) -> None:
    campaign.run(record_property)


def test_without_the_lock_a_transactional_write_fails_at_its_commit() -> None:
    kind = RivalKind((Strategy.TRANSACTIONAL,), lock=LockKind.NONE)
    with pytest.raises(Violation):
        play_all(kind, 150)


def play_all(kind: RivalKind, seeds: int) -> None:
    for seed in range(seeds):
        Rivalry(kind, seed).play()
