"""Rows follow their keys, new rows fill small files, and the rest begins files of its own."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.buckets import bucket_numbers, bucket_of
from lakewarden.engine.index.incoming import Matches, matches_by_slice, no_matches
from lakewarden.engine.index.kinds import Buckets
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.routing.route import Routed, route
from lakewarden.engine.write.routing.sizes import SizeLimits
from tests.engine.index.small_tables import keyed_rows

INSTANT = "20260101000000000"
# Ten rows fill a file, a file below half of that is small.
LIMITS = SizeLimits(record_bytes=10, small_file_bytes=50, max_file_bytes=100)
ON_READ = SizeLimits(record_bytes=10, small_file_bytes=50, max_file_bytes=100, rewrite_ratio=4.0)


def slice_of(file_id: str, size_bytes: int, *, partition: str = "a", logs: int = 0) -> FileSlice:
    base = BaseFile(
        f"{file_id}_0-0-0_{INSTANT}.parquet", file_id, "0-0-0", INSTANT, "parquet", size_bytes
    )
    names = [f".{file_id}_{INSTANT}.log.{n + 1}_0-0-0" for n in range(logs)]
    log_files = tuple(LogFile(name, file_id, INSTANT, 1, "0-0-0", 10) for name in names)
    return FileSlice(partition, file_id, INSTANT, base, log_files)


def pairs(found: Sequence[tuple[int, FileSlice]]) -> Matches:
    slices = sorted({slice_ for _, slice_ in found}, key=lambda slice_: slice_.key)
    rows = [np.array([row for row, one in found if one == slice_]) for slice_ in slices]
    return matches_by_slice(rows, slices)


def routed(
    rows: KeyedRows,
    matches: Matches | None = None,
    candidates: Sequence[FileSlice] = (),
    limits: SizeLimits = LIMITS,
) -> Routed:
    return route(rows, matches or no_matches(), candidates, limits, SeededIds(1))


def contents(group: GroupWork) -> tuple[list[int], list[int], list[int]]:
    return group.updates.tolist(), group.inserts.tolist(), group.departures.tolist()


def by_id(result: Routed) -> dict[str, tuple[list[int], list[int], list[int]]]:
    return {group.key.file_id: contents(group) for group in result.groups}


def rows_in(partition: str, count: int) -> KeyedRows:
    return keyed_rows([(partition, f"k{n}") for n in range(count)])


def test_nothing_to_write_is_no_work() -> None:
    assert routed(keyed_rows([])) == Routed((), 0)


def test_updates_go_to_every_group_that_has_the_key() -> None:
    first, second = slice_of("f1", 90), slice_of("f2", 90)
    result = routed(rows_in("a", 2), pairs([(0, first), (1, first), (1, second)]))
    assert by_id(result) == {"f1": ([0, 1], [], []), "f2": ([1], [], [])}


def test_deletes_of_unknown_keys_vanish_and_are_counted() -> None:
    rows = keyed_rows([("a", "k0"), ("a", "k1")], deletes=[0, 1])
    result = routed(rows, pairs([(1, slice_of("f1", 90))]))
    assert by_id(result) == {"f1": ([1], [], [])}
    assert result.vanished_count == 1


def test_departures_are_told_apart_from_updates() -> None:
    old, new = slice_of("f1", 90), slice_of("f2", 90, partition="b")
    rows = keyed_rows([("b", "k0"), ("b", "k1")])
    result = route(
        rows,
        pairs([(1, new)]),
        (),
        LIMITS,
        SeededIds(1),
        departures=pairs([(0, old), (1, old)]),
    )
    assert contents(result.groups[0]) == ([], [], [0, 1])
    assert contents(result.groups[1]) == ([1], [], [])
    # The row that left and is new to its partition begins a file there.
    assert result.groups[2].key.partition == "b"
    assert contents(result.groups[2]) == ([], [0], [])


def test_new_rows_fill_small_files_up_to_the_size_of_files() -> None:
    result = routed(rows_in("a", 9), candidates=[slice_of("f1", 45)])
    assert by_id(result)["f1"] == ([], [0, 1, 2, 3, 4], [])
    assert [contents(group) for group in result.groups if group.slice is None] == [
        ([], [5, 6, 7, 8], [])
    ]


def test_files_that_are_large_enough_take_nothing_in() -> None:
    assert "f1" not in by_id(routed(rows_in("a", 1), candidates=[slice_of("f1", 50)]))


def test_small_files_of_other_partitions_take_nothing_in() -> None:
    candidates = [slice_of("f1", 10, partition="b")]
    assert "f1" not in by_id(routed(rows_in("a", 1), candidates=candidates))


def test_a_file_that_updates_rewrite_anyway_is_filled_first() -> None:
    rewritten, smaller = slice_of("f2", 40), slice_of("f1", 10)
    result = routed(rows_in("a", 2), pairs([(0, rewritten)]), candidates=[smaller, rewritten])
    assert by_id(result) == {"f2": ([0], [1], [])}


def test_the_smallest_file_is_filled_before_larger_ones() -> None:
    result = routed(rows_in("a", 2), candidates=[slice_of("f1", 40), slice_of("f2", 10)])
    assert by_id(result) == {"f2": ([], [0, 1], [])}


def test_without_a_limit_for_small_files_all_new_rows_get_new_files() -> None:
    limits = SizeLimits(record_bytes=10, small_file_bytes=0, max_file_bytes=100)
    result = routed(rows_in("a", 1), candidates=[slice_of("f1", 0)], limits=limits)
    assert "f1" not in by_id(result)


def test_on_merge_on_read_a_small_file_is_rewritten_for_many_rows() -> None:
    result = routed(rows_in("a", 1), candidates=[slice_of("f1", 40)], limits=ON_READ)
    assert by_id(result) == {"f1": ([], [0], [])}


def test_on_merge_on_read_a_small_file_is_left_alone_for_few_rows() -> None:
    result = routed(rows_in("a", 1), candidates=[slice_of("f1", 41)], limits=ON_READ)
    assert "f1" not in by_id(result)


@pytest.mark.parametrize("limits", [LIMITS, ON_READ])
def test_a_slice_with_logs_takes_no_new_rows_in(limits: SizeLimits) -> None:
    result = routed(rows_in("a", 4), candidates=[slice_of("f1", 10, logs=1)], limits=limits)
    assert "f1" not in by_id(result)


def test_new_files_share_rows_evenly() -> None:
    sizes = [len(group.inserts) for group in routed(rows_in("a", 25)).groups]
    assert sizes == [9, 8, 8]


def test_new_files_have_a_row_count_where_it_is_set() -> None:
    limits = SizeLimits(record_bytes=10, max_file_bytes=100, split_rows=4)
    assert [len(group.inserts) for group in routed(rows_in("a", 8), limits=limits).groups] == [4, 4]


def test_new_groups_have_the_ids_of_the_port() -> None:
    (group,) = routed(rows_in("a", 1)).groups
    assert group.key.file_id == f"{SeededIds(1).fresh()}-0"


def test_new_rows_of_a_bucket_index_begin_one_group_for_each_bucket() -> None:
    rows, buckets = rows_in("a", 40), Buckets(("id",), 4, ("id",))
    result = route(rows, no_matches(), (), LIMITS, SeededIds(1), buckets=buckets)
    numbers = bucket_numbers(rows.keys, buckets)
    assert [bucket_of(group.key.file_id) for group in result.groups] == [0, 1, 2, 3]
    for group in result.groups:
        assert set(numbers[group.inserts].tolist()) == {bucket_of(group.key.file_id)}


SIZES = st.integers(0, 120)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(-1, 5)), max_size=40),
    st.lists(st.tuples(st.sampled_from("abc"), SIZES, st.integers(0, 1)), min_size=6, max_size=6),
    st.sampled_from([LIMITS, ON_READ]),
)
def test_every_row_goes_where_it_must_and_nowhere_else(
    given_rows: list[tuple[str, bool, int]],
    given_slices: list[tuple[str, int, int]],
    limits: SizeLimits,
) -> None:
    slices = [
        slice_of(f"f{at}", size, partition=path, logs=logs)
        for at, (path, size, logs) in enumerate(given_slices)
    ]
    rows = keyed_rows(
        [(path, f"k{at}") for at, (path, _, _) in enumerate(given_rows)],
        deletes=[at for at, (_, is_delete, _) in enumerate(given_rows) if is_delete],
    )
    known = {at: slices[place] for at, (_, _, place) in enumerate(given_rows) if place >= 0}
    result = routed(rows, pairs(list(known.items())), slices, limits)

    updates = {row: group.key for group in result.groups for row in group.updates.tolist()}
    assert updates == {row: slice_.key for row, slice_ in known.items()}
    inserted = Counter(row for group in result.groups for row in group.inserts.tolist())
    new = [at for at, (_, deletes, _) in enumerate(given_rows) if at not in known and not deletes]
    assert inserted == Counter(new)
    assert result.vanished_count == len(given_rows) - len(new) - len(known)
    for group in result.groups:
        assert {given_rows[row][0] for row in group.inserts.tolist()} <= {group.key.partition}
        base = group.slice.base_file.size_bytes if group.slice and group.slice.base_file else 0
        if len(group.inserts):
            assert base + limits.bytes_of(len(group.inserts)) <= limits.max_file_bytes
    assert len({group.key for group in result.groups}) == len(result.groups)
