"""The record index: in which file group each record key lives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.metadata.encoding.records import Versions, text_keys
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.storage.border import check_partition
from lakewarden.engine.table.config import METADATA_FOLDER

RECORD_COLUMN = "recordIndexMetadata"
_UUID_ENCODING = 0
_SAID_BY = f"{METADATA_FOLDER}/record_index"


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Where a record key lives."""

    key: str
    file_group_id: FileGroupId


def locate(shards: Sequence[MetadataPartition], keys: Sequence[str]) -> tuple[RecordLocation, ...]:
    """The locations of those keys that the table has, sorted by key.

    A global index is one shard; a partitioned one has a shard for each partition of the table.
    """
    return _sorted(
        location
        for shard in shards
        for location in _locations(shard.lookup(keys, [RECORD_COLUMN]).newest())
    )


def all_locations(shards: Sequence[MetadataPartition]) -> tuple[RecordLocation, ...]:
    """Every entry of the index, sorted by key."""
    return _sorted(
        location for shard in shards for location in _locations(shard.all([RECORD_COLUMN]).newest())
    )


def _sorted(locations: Iterable[RecordLocation]) -> tuple[RecordLocation, ...]:
    return tuple(sorted(locations, key=lambda location: (location.key, location.file_group_id)))


def _locations(newest: Versions) -> tuple[RecordLocation, ...]:
    column = newest.values.column(RECORD_COLUMN).combine_chunks()
    if len(column) == 0:
        return ()
    if pa.types.is_null(column.type) or column.null_count:
        raise corrupt("record_index", None, "An entry of the index has no location.")
    keys = text_keys(newest.keys)
    return tuple(map(RecordLocation, keys, homes_of(column)))


def homes_of(column: pa.StructArray) -> tuple[FileGroupId, ...]:
    """The file groups that some entries of the index name."""
    partitions = column.field("partitionName").to_pylist()
    for partition in set(partitions):
        check_partition(partition or "", _SAID_BY)
    return tuple(
        FileGroupId(partition or "", file_id)
        for partition, file_id in zip(partitions, _file_ids(column), strict=True)
    )


def _file_ids(column: pa.StructArray) -> list[str]:
    high, low, number, text, encoding = (
        column.field(name).to_pylist()
        for name in ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
    )
    return [
        f"{_uuid(high[at], low[at])}-{number[at]}" if encoding[at] == _UUID_ENCODING else text[at]
        for at in range(len(column))
    ]


def _uuid(high: int, low: int) -> str:
    digits = f"{high & (2**64 - 1):016x}{low & (2**64 - 1):016x}"
    return "-".join(
        digits[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    )
