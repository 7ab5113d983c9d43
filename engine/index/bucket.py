"""The bucket index: a key's hash is its file group, so no file is read.

A row is matched with the group of its bucket whether or not the group has its key.
"""

import numpy as np

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.buckets import bucket_numbers, bucket_of
from lakewarden.engine.index.incoming import Places, rows_by_partition
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.index.matches import Matches, matches_by_slice
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows


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
