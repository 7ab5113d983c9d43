"""Locating: finding the file groups that have the keys of a write, by the table's index."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.bloom import possible_by_footer
from lakewarden.engine.index.bucket import locate_in_buckets
from lakewarden.engine.index.incoming import Places, distinct_keys, rows_by_partition
from lakewarden.engine.index.kinds import IndexChoice, IndexKind
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.matches import (
    Matches,
    are_elsewhere,
    joined_matches,
    matches_by_slice,
    no_matches,
)
from lakewarden.engine.index.simple import locate_in_files
from lakewarden.engine.index.slice_keys import any_key
from lakewarden.engine.metadata.reading.arrivals import partition_of_shard
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.record_locations import locate_many
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


def locate(
    state: Snapshot,
    rows: KeyedRows,
    index: IndexChoice,
    executor: Executor,
    known: KeyCache | None = None,
) -> Matches:
    """Where the keys of rows already are; `known` is what the process keeps of a record index.

    Global indexes look into all partitions, unless they are kept to the one that a row belongs to;
    the others look into that one.
    """
    match index.kind:
        case IndexKind.BUCKET:
            assert index.buckets is not None
            return locate_in_buckets(state, rows, index.buckets)
        case IndexKind.RECORD_INDEX | IndexKind.GLOBAL_RECORD_INDEX:
            is_global = index.kind.is_global
            found = locate_in_record_index(state, rows, executor, is_global=is_global, known=known)
            is_kept = index.kind.is_global and not index.is_global
            return _within_partitions(state, rows, found, executor) if is_kept else found
        case IndexKind.BLOOM | IndexKind.GLOBAL_BLOOM:
            narrowing = possible_by_footer
        case _:
            narrowing = any_key
    return locate_in_files(state, rows, executor, is_global=index.is_global, narrowing=narrowing)


def _within_partitions(
    state: Snapshot, rows: KeyedRows, found: Matches, executor: Executor
) -> Matches:
    """Matches in the partitions of rows; the files tell of keys that the index has elsewhere.

    A record index knows one place of a key, and plain inserts may have put it into two.
    """
    elsewhere = are_elsewhere(rows, found)
    if not elsewhere.any():
        return found
    at = np.unique(found.rows[elsewhere])
    here = locate_in_files(state, rows.take(at), executor, is_global=False)
    return joined_matches(found.only(~elsewhere), replace(here, rows=at[here.rows]))


# The rows of each file group that the index names.
_Found = dict[FileGroupId, Places]


def locate_in_record_index(
    state: Snapshot,
    rows: KeyedRows,
    executor: Executor,
    *,
    is_global: bool,
    known: KeyCache | None = None,
) -> Matches:
    """Matches by the entries of the index, of a row's own partition or of all partitions."""
    if not len(rows):
        return no_matches()
    everything = state.metadata.record_index()
    if known is not None:
        known.prepare([one for shard in everything for one in shard.file_groups], executor)
    questions = (
        [(everything, np.arange(len(rows)))] if is_global else list(_by_partition(everything, rows))
    )
    found = [_found(shards, rows, places, executor, known) for shards, places in questions]
    slices = latest_file_slices(state, sorted({home.partition for one in found for home in one}))
    nothing = np.zeros(0, np.int64)
    rows_of = [
        np.concatenate([nothing, *(one[slice_.key] for one in found if slice_.key in one)])
        for slice_ in slices
    ]
    return matches_by_slice(rows_of, slices)


def _by_partition(
    everything: Sequence[MetadataPartition], rows: KeyedRows
) -> Iterator[tuple[Sequence[MetadataPartition], Places]]:
    """The shard of each partition that has one, and the partition's rows."""
    shards = {partition_of_shard(shard.file_group_ids[0]): shard for shard in everything}
    for partition, places in rows_by_partition(rows).items():
        if partition in shards:
            yield (shards[partition],), places


def _found(
    shards: Sequence[MetadataPartition],
    rows: KeyedRows,
    places: Places,
    executor: Executor,
    known: KeyCache | None,
) -> _Found:
    distinct = distinct_keys(rows.keys, places)
    located = locate_many(shards, distinct.keys, executor, known)
    if known is not None:
        known.lookups.asked += len(distinct.keys)
        known.lookups.found += len(located.keys)
    keys = distinct.places_of(located.keys)
    at = np.repeat(located.at, distinct.counts(keys))
    order = np.argsort(at, kind="stable")
    used, firsts = np.unique(at[order], return_index=True)
    parts = np.split(distinct.rows_of(keys)[order], firsts[1:])
    return {located.homes[home]: part for home, part in zip(used.tolist(), parts, strict=False)}
