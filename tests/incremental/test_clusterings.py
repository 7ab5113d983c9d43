"""Clustering: what has changed is all that looking at everything would find, in any history."""

from dataclasses import replace
from random import Random

import pytest

from lakewarden.engine.formats.instant_metadata import replace as clustering
from lakewarden.engine.services.clustering.service import CLUSTERING
from tests.incremental.histories import CHUNKS, Case, run_histories
from tests.incremental.planning_table import COW

FILTER = "hoodie.clustering.plan.partition.filter.mode"
PLAN = "hoodie.clustering.plan.strategy"


def without_some(plan: bytes, random: Random) -> bytes:
    """A plan as Java might have made it, of some of the groups."""
    decoded = clustering.decode_plan(plan, "the plan")
    assert decoded.clustering_plan is not None
    groups = decoded.clustering_plan.input_groups
    some = tuple(random.sample(groups, random.randint(1, len(groups))))
    made = replace(
        decoded.clustering_plan,
        input_groups=some,
        missing_schedule_partitions=(),
        extra_metadata={},
    )
    return clustering.encode_plan(replace(decoded, clustering_plan=made))


CASE = Case(
    service=CLUSTERING,
    # Files that are alone are left as they are, or there would be no end.
    settings={
        f"{PLAN}.single.group.clustering.enabled": "false",
        f"{PLAN}.small.file.limit": "100",
        f"{PLAN}.max.bytes.per.group": "150",
    },
    choices=(
        *[{}] * 4,
        {f"{PLAN}.max.num.groups": "1"},
        {FILTER: "RECENT_DAYS", f"{PLAN}.daybased.lookback.partitions": "3"},
        {FILTER: "SELECTED_PARTITIONS", f"{PLAN}.cluster.begin.partition": "2023-11-11"},
        {FILTER: "DAY_ROLLING"},
        {f"{PLAN}.partition.selected": "2023-11-09,2023-11-10"},
        {f"{PLAN}.partition.regex.pattern": ".*1[0-2]"},
        {f"{PLAN}.small.file.limit": "20"},
    ),
    properties=COW,
    without_some=without_some,
    adds=0.9,
    sizes=(10, 30, 60),
)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_look_at_what_has_changed_finds_all_there_is(chunk: int) -> None:
    run_histories(CASE, chunk, count=50)
