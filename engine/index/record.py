"""The record indexes: the metadata table tells where each key lives.

An entry counts only while its file group is live: a group that was replaced since is forgotten.
Deleted keys have no entry, so a key that comes back is new, as it is to Java.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.incoming import Places, distinct_keys, rows_by_partition
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.matches import Matches, matches_by_slice, no_matches
from lakewarden.engine.metadata.reading.arrivals import partition_of_shard
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.record_locations import locate_many
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows

# The rows of each file group that the index names.
_Found = dict[FileGroupId, Places]


def locate_in_record_index(
    state: Snapshot, rows: KeyedRows, executor: Executor, *, is_global: bool
) -> Matches:
    """Matches by the entries of the index, of a row's own partition or of all partitions."""
    if not len(rows):
        return no_matches()
    questions = (
        [(state.metadata.record_index(), np.arange(len(rows)))]
        if is_global
        else list(_by_partition(state, rows))
    )
    found = [_found(shards, rows, places, executor) for shards, places in questions]
    slices = latest_file_slices(state, sorted({home.partition for one in found for home in one}))
    nothing = np.zeros(0, np.int64)
    rows_of = [
        np.concatenate([nothing, *(one[slice_.key] for one in found if slice_.key in one)])
        for slice_ in slices
    ]
    return matches_by_slice(rows_of, slices)


def _by_partition(
    state: Snapshot, rows: KeyedRows
) -> Iterator[tuple[Sequence[MetadataPartition], Places]]:
    """The shard of each partition that has one, and the partition's rows."""
    shards = {
        partition_of_shard(shard.file_group_ids[0]): shard
        for shard in state.metadata.record_index()
    }
    for partition, places in rows_by_partition(rows).items():
        if partition in shards:
            yield (shards[partition],), places


def _found(
    shards: Sequence[MetadataPartition], rows: KeyedRows, places: Places, executor: Executor
) -> _Found:
    distinct = distinct_keys(rows.keys, places)
    located = locate_many(shards, distinct.keys, executor)
    keys = distinct.places_of(located.keys)
    at = np.repeat(located.at, distinct.counts(keys))
    order = np.argsort(at, kind="stable")
    used, firsts = np.unique(at[order], return_index=True)
    parts = np.split(distinct.rows_of(keys)[order], firsts[1:])
    return {located.homes[home]: part for home, part in zip(used.tolist(), parts, strict=False)}
