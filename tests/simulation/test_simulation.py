"""Races, simulated: whatever happens between the calls of many processes, the promises hold.

A run that fails prints the line that replays it.
"""

from collections.abc import Callable
from functools import partial

import pytest

from lakewarden.engine.transaction.state.context import Service
from tests.simulation.campaign import SEEDS, Campaign, campaigns
from tests.simulation.locks import LockKind
from tests.simulation.scenario import Run, Scenario

SCENARIOS = [
    Scenario(service, is_cancellable, lock)
    for service in Service
    for is_cancellable in (False, True)
    for lock in LockKind
]
CAMPAIGNS = [
    campaign
    for scenario in SCENARIOS
    for campaign in campaigns(scenario.name, partial(Run, scenario), SEEDS // len(SCENARIOS) + 1)
]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=str)
def test_promises_hold(campaign: Campaign, record_property: Callable[[str, object], None]) -> None:
    campaign.run(record_property)
