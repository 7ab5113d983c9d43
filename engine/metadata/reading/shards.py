"""Shards: the file groups that share the keys of a metadata partition, and what they are called.

A partition is one shard, but a partitioned record index, which has one for each partition of the
table. How many file groups a shard has is written down nowhere: they are counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.file_names import DataFile
from lakewarden.engine.formats.path_names import escape_file_id
from lakewarden.engine.kernel.settings import Setting, Settings, whole_number
from lakewarden.engine.metadata.reading.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)

_SHARDS = {COLUMN_STATS: "col-stats"}
_KEY = "hoodie.metadata."
_GLOBAL_INDEX = f"{_KEY}global.record.level.index."

COLUMN_STATS_GROUPS = Setting(
    f"{_KEY}index.column.stats.file.group.count",
    1,
    whole_number,
    "How many file groups the column statistics of a new table have.",
)
PARTITION_STATS_GROUPS = Setting(
    f"{_KEY}index.partition.stats.file.group.count",
    1,
    whole_number,
    "How many file groups the partition statistics of a new table have.",
)
RECORD_INDEX_GROUPS_MIN = Setting(
    f"{_GLOBAL_INDEX}min.filegroup.count",
    10,
    whole_number,
    "The fewest file groups of a new record index.",
    (f"{_KEY}record.index.min.filegroup.count",),
)
RECORD_INDEX_GROUPS_MAX = Setting(
    f"{_GLOBAL_INDEX}max.filegroup.count",
    10_000,
    whole_number,
    "The most file groups of a new record index.",
    (f"{_KEY}record.index.max.filegroup.count",),
)
PARTITIONED_INDEX_GROUPS_MIN = Setting(
    f"{_KEY}record.level.index.min.filegroup.count",
    1,
    whole_number,
    "The fewest file groups that a partitioned record index has for each partition.",
)
PARTITIONED_INDEX_GROUPS_MAX = Setting(
    f"{_KEY}record.level.index.max.filegroup.count",
    10,
    whole_number,
    "The most file groups that a partitioned record index has for each partition.",
)
RECORD_INDEX_GROWTH = Setting(
    f"{_KEY}record.index.growth.factor",
    2.0,
    float,
    "For how many times the present records a new record index has room.",
)
RECORD_INDEX_GROUP_BYTES_MAX = Setting(
    f"{_KEY}record.index.max.filegroup.size",
    1 << 30,
    whole_number,
    "The largest size in bytes of a file group of a new record index.",
)
BLOOM_FILTERS_GROUPS = Setting(
    f"{_KEY}index.bloom.filter.file.group.count",
    4,
    whole_number,
    "How many file groups the bloom filters of a new table have.",
)
EXPRESSION_GROUPS = Setting(
    f"{_KEY}index.expression.file.group.count",
    2,
    whole_number,
    "How many file groups a new expression index has.",
)
GROUP_SETTINGS: tuple[Setting[object], ...] = (
    BLOOM_FILTERS_GROUPS,
    COLUMN_STATS_GROUPS,
    EXPRESSION_GROUPS,
    PARTITION_STATS_GROUPS,
    RECORD_INDEX_GROUPS_MIN,
    RECORD_INDEX_GROUPS_MAX,
    PARTITIONED_INDEX_GROUPS_MIN,
    PARTITIONED_INDEX_GROUPS_MAX,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_GROUP_BYTES_MAX,
)
# What Hudi reckons for one entry of the index.
_RECORD_BYTES = 48
_FIXED_COUNTS = {
    BLOOM_FILTERS: BLOOM_FILTERS_GROUPS,
    COLUMN_STATS: COLUMN_STATS_GROUPS,
    PARTITION_STATS: PARTITION_STATS_GROUPS,
}


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """How many file groups a partition or a shard gets when it is made."""

    settings: Settings = field(default_factory=Settings)

    def of_partition(self, partition: str, record_count: int = 0) -> int:
        """The number for a partition; an index of records grows with those it begins with."""
        if partition == RECORD_INDEX or partition.startswith(SECONDARY_INDEX_PREFIX):
            limits = self.settings[RECORD_INDEX_GROUPS_MIN], self.settings[RECORD_INDEX_GROUPS_MAX]
            return self._of_records(record_count, *limits)
        if partition.startswith(EXPRESSION_INDEX_PREFIX):
            return max(1, self.settings[EXPRESSION_GROUPS])
        setting = _FIXED_COUNTS.get(partition)
        return 1 if setting is None else max(1, self.settings[setting])

    def of_record_shard(self, record_count: int) -> int:
        """The number that a partitioned record index has for one partition of the table."""
        limits = (
            self.settings[PARTITIONED_INDEX_GROUPS_MIN],
            self.settings[PARTITIONED_INDEX_GROUPS_MAX],
        )
        return self._of_records(record_count, *limits)

    def _of_records(self, record_count: int, least: int, most: int) -> int:
        expected = int(record_count * self.settings[RECORD_INDEX_GROWTH])
        room = max(1, self.settings[RECORD_INDEX_GROUP_BYTES_MAX] // _RECORD_BYTES)
        return max(1, least, min(expected // room, most))


def shard_of(partition: str) -> str:
    """The only shard of a partition."""
    return _SHARDS.get(partition, partition.replace("_", "-"))


def record_shard(data_partition: str) -> str:
    """The shard that a partitioned record index has for a partition of the table."""
    return f"{shard_of(RECORD_INDEX)}-{escape_file_id(data_partition)}"


def file_id(shard: str, number: int) -> str:
    return f"{shard}-{number:04d}-0"


def file_groups_by_shard(files: Iterable[DataFile]) -> Mapping[str, tuple[str, ...]]:
    """The file ids of each shard, in the order in which hashing counts them."""
    found: dict[str, set[str]] = {}
    for file in files:
        found.setdefault(file.file_id.rsplit("-", 2)[0], set()).add(file.file_id)
    return {shard: tuple(sorted(ids)) for shard, ids in found.items()}
