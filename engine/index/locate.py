"""Locating: finding the file groups that have the keys of a write, by the table's index.

Current slices: what a write meets, the newest slice of every live file group.

The bloom indexes: footers of base files tell which keys they cannot have.

Looking for keys in the files themselves, which needs no index and can't be out of date.

The bucket index: a key's hash is its file group, so no file is read.

A row is matched with the group of its bucket whether or not the group has its key.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.index.buckets import bucket_numbers, bucket_of
from lakewarden.engine.index.incoming import (
    DistinctKeys,
    Matches,
    Places,
    are_elsewhere,
    distinct_keys,
    joined_matches,
    matches_by_slice,
    no_matches,
    rows_by_partition,
)
from lakewarden.engine.index.kinds import Buckets, IndexChoice, IndexKind
from lakewarden.engine.index.slice_keys import (
    KeyFile,
    Narrowing,
    Search,
    SliceKeys,
    WantedKeys,
    any_key,
    key_columns,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.metadata.reading.arrivals import partition_of_shard
from lakewarden.engine.metadata.reading.column_stats import TextBounds, text_bounds
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.record_index import locate_many
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import RECORD_KEY


def latest_file_slices(state: Snapshot, partitions: Sequence[str] | None) -> tuple[FileSlice, ...]:
    """The slices of some partitions, of all without any, sorted by partition and file id.

    Logs above a pending compaction belong to the slice below it, as they do for a reader.
    """
    chosen = None if partitions is None else tuple(partitions)
    groups = state.file_groups(state.visibility(), chosen, use_metadata=True)
    return tuple(group.latest_merged() for group in groups)


def possible_by_footer(file: KeyFile, wanted: pa.Array) -> pa.Array:
    """The wanted keys within a file's key range that its bloom filter does not rule out.

    Files without such footers, which other writers may leave, rule out nothing.
    """
    footer = key_footer(file.metadata)
    possible = wanted
    if footer.min_key is not None and footer.max_key is not None:
        # Java writes the bounds in the order of its strings, which differs from that of bytes
        # behind the basic plane of Unicode; such keys are left to the filter.
        low, high = footer.min_key, footer.max_key
        if low.isascii() and high.isascii():
            inside = pc.and_(pc.greater_equal(wanted, low), pc.less_equal(wanted, high))
            possible = wanted.filter(inside)
    bloom = footer.bloom_filter(file.path)
    if bloom is None or not len(possible):
        return possible
    return possible.filter(pa.array(bloom.might_contain(possible)))


# Opening fewer files takes no longer than asking for the statistics of all of them.
_ASKED_FROM = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Sought:
    """Distinct keys of some rows, hashed; the same for all slices that they are looked for in."""

    distinct: DistinctKeys
    wanted: WantedKeys = field(repr=False)


# Slices of fewer bytes are searched sooner than another worker has taken up a part of them.
SHARED_FROM_BYTES = 1 << 20


def locate_in_files(
    state: Snapshot,
    rows: KeyedRows,
    executor: Executor,
    *,
    is_global: bool,
    narrowing: Narrowing = any_key,
) -> Matches:
    """Matches by the keys in files: those of a row's own partition, or of all partitions."""
    if not len(rows):
        return no_matches()
    if is_global:
        slices = latest_file_slices(state, None)
        everything = _sought(rows, np.arange(len(rows)))
        asked = [everything] * len(slices)
    else:
        sought = {path: _sought(rows, places) for path, places in rows_by_partition(rows).items()}
        slices = latest_file_slices(state, sorted(sought))
        asked = [sought[slice_.partition] for slice_ in slices]
    may_hold = _may_hold(state, slices, asked)
    slices = tuple(one for one, may in zip(slices, may_hold, strict=True) if may)
    asked = [one for one, may in zip(asked, may_hold, strict=True) if may]
    keys = SliceKeys(state.storage, key_columns(state.config), narrowing, state.closed_logs)
    # With fewer slices than workers, several workers share a slice, unless it is read at once.
    size_bytes = sum(one.size_bytes for one in slices)
    shared = executor.workers if size_bytes >= SHARED_FROM_BYTES else 1
    part_count = max(shared // max(len(slices), 1), 1)
    searches = [
        Search(slice_, one.wanted, part, part_count)
        for slice_, one in zip(slices, asked, strict=True)
        for part in range(part_count)
    ]
    found = list(executor.map(keys.find, searches))
    rows_found = [
        one.distinct.rows_of(one.wanted.united(found[at * part_count :][:part_count]))
        for at, one in enumerate(asked)
    ]
    return matches_by_slice(rows_found, slices)


def _may_hold(state: Snapshot, slices: Sequence[FileSlice], asked: Sequence[_Sought]) -> list[bool]:
    """Which slices have a wanted key between their smallest and their largest one.

    A key that only a delete in a log names is in no file; it need not be found.
    """
    has_ranges = state.config.has_metadata(COLUMN_STATS) and state.config.has_meta_fields
    if len(slices) < _ASKED_FROM or not has_ranges:
        return [True] * len(slices)
    partitions = sorted({slice_.partition for slice_ in slices})
    bounds = text_bounds(state.metadata.partition(COLUMN_STATS), RECORD_KEY, partitions)
    ordered = {id(one): _ordered(one.distinct.keys) for one in asked}
    return [
        _is_between(ordered[id(one)], slice_, bounds.get(slice_.partition, {}))
        for slice_, one in zip(slices, asked, strict=True)
    ]


def _ordered(keys: pa.Array) -> list[str]:
    # By their bytes, which is the order of Python's texts, too.
    ordered: list[str] = keys.take(pc.sort_indices(keys)).to_pylist()
    return ordered


def _is_between(
    ordered: Sequence[str], slice_: FileSlice, bounds: Mapping[str, TextBounds | None]
) -> bool:
    """Whether one of some keys is within the bounds of a slice, if all of its files tell theirs."""
    names = [file.name for file in slice_.files]
    known = [one for name in names if (one := bounds.get(name)) is not None]
    if not known or not all(name in bounds for name in names):
        return True
    place = bisect_left(ordered, min(low for low, _ in known))
    return place < len(ordered) and ordered[place] <= max(high for _, high in known)


def _sought(rows: KeyedRows, places: Places) -> _Sought:
    distinct = distinct_keys(rows.keys, places)
    return _Sought(distinct, WantedKeys(distinct.keys, distinct.hashes))


def locate_in_buckets(state: Snapshot, rows: KeyedRows, buckets: Buckets) -> Matches:
    """Matches by the buckets that the partitions of rows have."""
    places = rows_by_partition(rows)
    slices = latest_file_slices(state, list(places))
    slice_of = _slices_of_buckets(slices, buckets)
    numbers = bucket_numbers(rows.keys, buckets)
    found: dict[int, Places] = {}
    for partition, part in places.items():
        for number in np.unique(numbers[part]).tolist():
            at = slice_of.get((partition, number))
            if at is not None:
                found[at] = part[numbers[part] == number]
    nothing = np.zeros(0, np.int64)
    return matches_by_slice([found.get(at, nothing) for at in range(len(slices))], slices)


def _slices_of_buckets(
    slices: tuple[FileSlice, ...], buckets: Buckets
) -> dict[tuple[str, int], int]:
    """The place of the slice of each bucket of each partition."""
    places: dict[tuple[str, int], int] = {}
    for at, slice_ in enumerate(slices):
        number = bucket_of(slice_.file_id)
        if number is None or number >= buckets.count:
            raise _other_division(slice_, buckets)
        if places.setdefault((slice_.partition, number), at) != at:
            raise _two_groups(slice_, number)
    return places


def _other_division(slice_: FileSlice, buckets: Buckets) -> InvalidRequest:
    return InvalidRequest(
        "not_in_buckets",
        what=(
            f"The file group {slice_.file_id} of partition {slice_.partition!r} is not one "
            f"of {buckets.count} buckets."
        ),
        why="With a bucket index every file group's id starts with its bucket number.",
        now="Set hoodie.index.type and hoodie.bucket.index.num.buckets as they were when the table"
        " was first written.",
        file_id=slice_.file_id,
        partition=slice_.partition,
    )


def _two_groups(slice_: FileSlice, number: int) -> CorruptTable:
    return CorruptTable(
        "two_groups_of_a_bucket",
        what=f"The partition {slice_.partition!r} has two file groups for the bucket {number}.",
        why="Two writers that share no lock have created one each.",
        now="Rewrite the partition with insert_overwrite.",
        partition=slice_.partition,
        bucket=number,
    )


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
