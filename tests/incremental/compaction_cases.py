"""Histories of compactions that tests share."""

from dataclasses import replace
from random import Random

from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.services.compaction.service import COMPACTION
from tests.incremental.histories import Case
from tests.incremental.planning_table import MOR

STRATEGY = "hoodie.compaction.strategy"


def without_some(plan: bytes, random: Random) -> bytes:
    """A plan as Java might have made it, for some of the file groups."""
    decoded = compaction.decode_plan(plan, "the plan")
    count = random.randint(1, len(decoded.operations))
    some = tuple(random.sample(decoded.operations, count))
    return compaction.encode_plan(
        replace(decoded, operations=some, missing_schedule_partitions=(), extra_metadata={})
    )


CASE = Case(
    service=COMPACTION,
    settings={},
    choices=(
        {STRATEGY: "UnBounded"},
        {STRATEGY: "LogFileSizeBased", "hoodie.compaction.logfile.size.threshold": "150"},
        {STRATEGY: "LogFileNumBased", "hoodie.compaction.logfile.num.threshold": "2"},
        {STRATEGY: "BoundedIO", "hoodie.compaction.target.io": "0"},
        {STRATEGY: "PartitionRegexBased", "hoodie.compaction.partition.path.regex": "1[0-3]$"},
        {STRATEGY: "BoundedPartitionAware", "hoodie.compaction.daybased.target.partitions": "2"},
        {STRATEGY: "UnBoundedPartitionAware", "hoodie.compaction.daybased.target.partitions": "2"},
        {STRATEGY: "DayBased", "hoodie.compaction.daybased.target.partitions": "3"},
    ),
    properties=MOR,
    without_some=without_some,
)
