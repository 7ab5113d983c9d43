"""Strategies that take the newest partitions of a table take no others, whatever has changed."""

import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, draft, schedule
from tests.incremental.planning_table import COW, MOR, ToyTable

OLD = FileGroupId("2023-11-08", "f1"), FileGroupId("2023-11-08", "f2")
NEW = FileGroupId("2023-11-09", "f3"), FileGroupId("2023-11-09", "f4")
NEWEST_ONLY = {
    COMPACTION: {
        "hoodie__compaction__strategy": "DayBased",
        "hoodie__compaction__daybased__target__partitions": "1",
    },
    CLUSTERING: {
        "hoodie__clustering__plan__partition__filter__mode": "RECENT_DAYS",
        "hoodie__clustering__plan__strategy__daybased__lookback__partitions": "1",
    },
}


@pytest.mark.parametrize("service", [COMPACTION, CLUSTERING])
def test_an_old_partition_is_none_of_the_newest_because_nothing_else_has_changed(
    service: TableService,
) -> None:
    is_compaction = service is COMPACTION
    table = ToyTable(properties=dict(MOR if is_compaction else COW))
    table.insert(*OLD, *NEW)
    if is_compaction:
        table.append(*OLD, *NEW)
    done = schedule(table.context(), service, PlanRequest())
    assert isinstance(done, Scheduled)
    table.carry_out(done.instant)
    table.append(*OLD) if is_compaction else table.insert(*OLD)
    assert isinstance(draft(table.context(), service, PlanRequest()), Draft)
    assert not draft(table.context(**NEWEST_ONLY[service]), service, PlanRequest())
