"""Races on real tables: the services as they are, with and without a metadata table."""

from collections.abc import Callable
from functools import partial

import pytest

from lakewarden.engine.transaction.state.context import Service
from tests.simulation.campaign import SEEDS, Campaign, campaigns
from tests.simulation.locks import LockKind
from tests.simulation.real import RealRun, RealRunWithMetadata
from tests.simulation.scenario import Scenario

SHARES = {RealRun: 24, RealRunWithMetadata: 100}
SCENARIOS = [
    Scenario(service, is_cancellable, lock)
    for service in Service
    for is_cancellable in (False, True)
    for lock in LockKind
]
CAMPAIGNS = [
    campaign
    for kind, share in SHARES.items()
    for scenario in SCENARIOS
    for campaign in campaigns(
        f"{kind.__name__}-{scenario.name}",
        partial(kind, scenario),
        SEEDS // share // len(SCENARIOS) + 1,
    )
]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=str)
def test_promises_hold(campaign: Campaign, record_property: Callable[[str, object], None]) -> None:
    campaign.run(record_property)
