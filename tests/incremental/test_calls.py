"""What planning costs: twelve partitions of ten thousand as much as twelve of a thousand."""

import pytest

from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest
from lakewarden.engine.services.planning.schedule import TableService, draft
from lakewarden.engine.testing.fault_plan import StorageCall
from lakewarden.engine.testing.faults import FaultyStorage
from tests.incremental.names_only import SETTINGS, TOUCHED, partition_of, touched_table


def planned_calls(service: TableService, partitions: int) -> list[StorageCall]:
    """The storage calls of a plan when twelve partitions have work for it."""
    world = touched_table(service, partitions)
    watched = FaultyStorage(world.storage)
    context = world.context(storage=watched, **SETTINGS[service])
    opened = len(watched.calls)
    drafted = draft(context, service, PlanRequest())
    assert isinstance(drafted, Draft)
    assert {key.partition for key in drafted.groups} == set(map(partition_of, TOUCHED))
    return list(watched.calls[opened:])


@pytest.mark.parametrize(
    ("service", "few", "many"),
    [(COMPACTION, 1_000, 10_000), (CLUSTERING, 100, 1_000), (LOG_COMPACTION, 100, 1_000)],
)
def test_a_plan_costs_what_has_changed_and_not_what_there_is(
    service: TableService, few: int, many: int
) -> None:
    calls = planned_calls(service, many)
    assert len(calls) == len(planned_calls(service, few))
    looked_into = {call.path.partition("/")[0] for call in calls} - {".hoodie"}
    # Only a log compaction has to count blocks.
    wanted = map(partition_of, TOUCHED) if service is LOG_COMPACTION else ()
    assert looked_into == set(wanted)
