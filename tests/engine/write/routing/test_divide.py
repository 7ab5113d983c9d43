"""A bulk insert becomes balanced new files of one partition each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.routing.route import PARALLEL_FILE_BYTES_MIN, divide
from lakewarden.engine.write.routing.sizes import SizeLimits
from tests.engine.index.small_tables import keyed_rows

TEN_ROWS = SizeLimits(record_bytes=10, max_file_bytes=100)
# Four rows are just worth a worker of their own.
LARGE_ROWS = SizeLimits(record_bytes=PARALLEL_FILE_BYTES_MIN // 4, max_file_bytes=1 << 40)


def shape(groups: tuple[GroupWork, ...]) -> list[tuple[str, list[int]]]:
    return [(group.key.partition, group.inserts.tolist()) for group in groups]


def test_no_rows_make_no_files() -> None:
    assert divide(keyed_rows([]), TEN_ROWS, SeededIds(1)) == ()


def test_every_partition_has_files_of_its_own() -> None:
    rows = keyed_rows([("b", "k0"), ("a", "k1"), ("b", "k2")])
    assert shape(divide(rows, TEN_ROWS, SeededIds(1))) == [("a", [1]), ("b", [0, 2])]


def test_files_are_no_larger_than_they_shall_be_and_alike() -> None:
    rows = keyed_rows([("a", f"k{n}") for n in range(21)])
    groups = divide(rows, TEN_ROWS, SeededIds(1))
    assert [len(group.inserts) for group in groups] == [7, 7, 7]


@pytest.mark.parametrize(("count", "sizes"), [(7, [7]), (8, [4, 4]), (40, [20, 20])])
def test_workers_get_a_file_each_where_it_is_worth_it(count: int, sizes: list[int]) -> None:
    rows = keyed_rows([("a", f"k{n}") for n in range(count)])
    groups = divide(rows, LARGE_ROWS, SeededIds(1), workers=2)
    assert [len(group.inserts) for group in groups] == sizes


def test_workers_are_shared_among_partitions() -> None:
    rows = keyed_rows([(path, f"k{n}") for path in "ab" for n in range(20)])
    assert len(divide(rows, LARGE_ROWS, SeededIds(1), workers=2)) == 2


def test_rows_are_sorted_over_the_files_of_a_partition() -> None:
    rows = keyed_rows([("a", f"k{n}") for n in range(12)], ordering={n: n % 3 for n in range(12)})
    groups = divide(rows, TEN_ROWS, SeededIds(1), sort=("ts",))
    assert shape(groups) == [("a", [0, 3, 6, 9, 1, 4]), ("a", [7, 10, 2, 5, 8, 11])]


def test_rows_can_be_sorted_by_their_keys() -> None:
    rows = keyed_rows([("a", "k2"), ("a", "k0"), ("a", "k1")])
    groups = divide(rows, TEN_ROWS, SeededIds(1), sort=("_hoodie_record_key",))
    assert shape(groups) == [("a", [1, 2, 0])]


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        divide(keyed_rows([("a", "k0")]), TEN_ROWS, SeededIds(1), sort=("nothing",))
    assert refused.value.code == "unknown_column"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=60),
    st.integers(1, 9),
    st.sampled_from([(), ("ts",), ("p", "ts")]),
)
def test_every_row_is_in_one_file_of_its_partition(
    given_rows: list[tuple[str, int]], workers: int, sort: tuple[str, ...]
) -> None:
    rows = keyed_rows(
        [(path, f"k{at}") for at, (path, _) in enumerate(given_rows)],
        ordering={at: time for at, (_, time) in enumerate(given_rows)},
    )
    groups = divide(rows, TEN_ROWS, SeededIds(1), workers=workers, sort=sort)
    assert shape(groups) == shape(divide(rows, TEN_ROWS, SeededIds(1), workers=workers, sort=sort))
    written = [row for group in groups for row in group.inserts.tolist()]
    assert sorted(written) == list(range(len(given_rows)))
    for group in groups:
        assert 0 < len(group.inserts) <= TEN_ROWS.rows_per_file
        assert {given_rows[row][0] for row in group.inserts.tolist()} == {group.key.partition}
    if sort:
        for path in "abc":
            inside = [g.inserts.tolist() for g in groups if g.key.partition == path]
            times = [given_rows[row][1] for part in inside for row in part]
            assert times == sorted(times)
