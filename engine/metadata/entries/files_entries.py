"""Entries of the `files` partition: which files came into being, and which are gone."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.hashing import NO_PARTITION_NAME
from lakewarden.engine.metadata.encoding.entries import Entries
from lakewarden.engine.metadata.encoding.record_schema import (
    ALL_PARTITIONS,
    FILES_OF_PARTITION,
    encode_values,
)
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.reading.files import ALL_PARTITIONS_KEY, FILES_COLUMN

# Name -> size; None stands for a file or a partition that is gone.
Sizes = Mapping[str, int | None]


def files_entries(change: TableChange) -> Entries:
    """What a change says about files."""
    by_partition = _sizes(change)
    listed: dict[str, Sizes] = {
        _name(partition): by_partition[partition] for partition in sorted(by_partition)
    }
    if change.new_files or change.deleted_partitions or not change.deleted_files:
        # Java names the touched partitions in every commit, known or not.
        listed = {ALL_PARTITIONS_KEY: _partitions(change), **listed}
    gone = [_name(partition) for partition in sorted(change.deleted_partitions)]
    return files_listing(listed, gone)


def files_listing(listed: Mapping[str, Sizes], gone: list[str]) -> Entries:
    """Entries that say of each key which names it has or has lost; keys that are gone go."""
    types = [ALL_PARTITIONS if key == ALL_PARTITIONS_KEY else FILES_OF_PARTITION for key in listed]
    values = encode_values(np.array(types), FILES_COLUMN, _maps(list(listed.values())))
    return Entries.of(list(listed), values, gone)


def _sizes(change: TableChange) -> dict[str, dict[str, int | None]]:
    found: dict[str, dict[str, int | None]] = {}
    for partition, names in change.deleted_files.items():
        found.setdefault(partition, {}).update(dict.fromkeys(names))
    for file in change.new_files:
        found.setdefault(file.partition, {})[file.name] = file.size_bytes
    return {
        partition: sizes
        for partition, sizes in found.items()
        if sizes and partition not in change.deleted_partitions
    }


def _partitions(change: TableChange) -> Sizes:
    named: dict[str, int | None] = {_name(file.partition): 0 for file in change.new_files}
    named |= dict.fromkeys(map(_name, change.deleted_partitions))
    return named


def _name(partition: str) -> str:
    return partition or NO_PARTITION_NAME


def _maps(maps: list[Sizes]) -> pa.MapArray:
    """One map for each key, from a name to its size and whether it is gone."""
    ends = np.cumsum([0, *(len(sizes) for sizes in maps)])
    names = [name for sizes in maps for name in sorted(sizes)]
    sizes_in_order = [sizes[name] for sizes in maps for name in sorted(sizes)]
    items = pa.StructArray.from_arrays(
        [
            pa.array([size or 0 for size in sizes_in_order], pa.int64()),
            pa.array([size is None for size in sizes_in_order], pa.bool_()),
        ],
        names=["size", "isDeleted"],
    )
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), pa.array(names, pa.string()), items)
