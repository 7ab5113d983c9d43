"""The record index: in which file group each record key lives.

Record locations: where many record keys live, looked up in the record index all at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.metadata.encoding.records import Versions, text_keys
from lakewarden.engine.metadata.reading.partition import MetadataFileGroup, MetadataPartition
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.storage.paths import check_partition
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


Places = npt.NDArray[np.int64]

_MISSING = -1
_FIELDS = (
    "partitionName",
    "fileIdHighBits",
    "fileIdLowBits",
    "fileIndex",
    "fileId",
    "fileIdEncoding",
)


@dataclass(frozen=True, slots=True, eq=False)
class RecordLocations:
    """Keys that the index has, and in which of the distinct homes each of them lives."""

    keys: pa.StringArray
    at: Places
    homes: tuple[FileGroupId, ...]


class KnownLocations(Protocol):
    """What is known of file groups of the index without asking them."""

    def locate(self, group: MetadataFileGroup, keys: pa.LargeBinaryArray) -> RecordLocations | None:
        """The locations of those keys that a file group has; None if it has to be asked."""
        ...


def locate_many(
    shards: Sequence[MetadataPartition],
    keys: pa.Array,
    executor: Executor,
    known: KnownLocations | None = None,
) -> RecordLocations:
    """The locations of those distinct keys that the shards have."""
    found: list[RecordLocations] = []
    for shard in shards:
        asked = shard.shares(keys)
        if known is not None:
            answers = [known.locate(group, own) for group, own in asked]
            found += [one for one in answers if one is not None]
            asked = [one for one, answer in zip(asked, answers, strict=True) if answer is None]
        found += map(locations_of, shard.newest_among(asked, [RECORD_COLUMN], executor))
    homes = tuple(dict.fromkeys(home for one in found for home in one.homes))
    number_of = {home: number for number, home in enumerate(homes)}
    at = [
        np.array([number_of[home] for home in one.homes], np.int64)[one.at]
        for one in found
        if len(one.at)
    ]
    return RecordLocations(
        pa.concat_arrays([pa.array([], pa.string()), *(one.keys for one in found)]),
        np.concatenate([np.zeros(0, np.int64), *at]),
        homes,
    )


def locations_of(newest: Versions) -> RecordLocations:
    """What entries of the index say, of which none is a removal."""
    column = newest.values.column(RECORD_COLUMN).combine_chunks()
    keys = newest.keys.cast(pa.large_string()).cast(pa.string())
    if len(column) == 0:
        return RecordLocations(keys, np.zeros(0, np.int64), ())
    if pa.types.is_null(column.type) or column.null_count:
        raise corrupt("record_index", None, "An entry of the index has no location.")
    at, firsts = _distinct([column.field(name) for name in _FIELDS])
    return RecordLocations(keys, at, homes_of(column.take(pa.array(firsts))))


def _distinct(columns: Sequence[pa.Array]) -> tuple[Places, Places]:
    """For each row a number that equal rows share, and the first row of each number."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = pc.fill_null(column.dictionary_encode().indices, _MISSING)
        own = encoded.to_numpy(zero_copy_only=False).astype(np.int64)
        # Both factors are at most the number of rows, so the product cannot overflow.
        mixed = pa.array(numbers * (own.max() + 2) + own + 1).dictionary_encode()
        numbers = mixed.indices.to_numpy().astype(np.int64)
    firsts = np.zeros(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, firsts
