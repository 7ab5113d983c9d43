"""One row per key among incoming rows; the rules were seen in Hudi 1.2."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode
from lakewarden.engine.write.rows.combine import combined

EVENT = MergeRules(MergeMode.EVENT_TIME, ("ts",))
COMMIT = MergeRules(MergeMode.COMMIT_TIME, ("ts",))


def keyed(
    rows: list[tuple[str, str, int | None, str | None]], deletes: frozenset[int] = frozenset()
) -> KeyedRows:
    """Rows of key, partition, ordering value and value."""
    keys, partitions, ordering, values = map(list, zip(*rows, strict=True))
    is_delete = np.array([at in deletes for at in range(len(rows))])
    table = pa.table({"ts": pa.array(ordering, pa.int64()), "w": pa.array(values, pa.string())})
    paths = pa.array(partitions).dictionary_encode()
    return KeyedRows(table, pa.array(keys), paths, is_delete, np.zeros(len(rows), dtype=bool))


def values(rows: KeyedRows) -> list[str | None]:
    found: list[str | None] = rows.rows.column("w").to_pylist()
    return found


ROWS = [
    ("1", "p", 5, "first"),
    ("1", "p", 3, "second"),
    ("2", "p", 4, "first"),
    ("2", "p", 4, "second"),
    ("3", "p", 1, "first"),
    ("3", "p", 2, "second"),
]


def test_event_time_keeps_the_larger_and_of_equals_the_later() -> None:
    assert values(combined(keyed(ROWS), EVENT, by_partition=True)) == ["first", "second", "second"]


def test_commit_time_keeps_the_later() -> None:
    assert values(combined(keyed(ROWS), COMMIT, by_partition=True)) == ["second"] * 3


@pytest.mark.parametrize(("by_partition", "count"), [(True, 2), (False, 1)])
def test_a_key_is_that_of_its_partition_unless_the_index_is_global(
    by_partition: bool, count: int
) -> None:
    rows = keyed([("1", "p", 1, "a"), ("1", "q", 2, "b"), ("1", "q", 2, "c")])
    assert len(combined(rows, EVENT, by_partition=by_partition)) == count


def test_distinct_keys_are_left_alone() -> None:
    rows = keyed(ROWS[::2])
    assert combined(rows, EVENT, by_partition=True) is rows


def test_a_delete_with_the_larger_value_wins() -> None:
    found = combined(keyed(ROWS[:2], deletes=frozenset({0})), EVENT, by_partition=True)
    assert found.is_delete.tolist() == [True]


def test_values_that_do_not_count_come_from_the_row_that_lost() -> None:
    rules = MergeRules(MergeMode.EVENT_TIME, ("ts",), PartialMode.IGNORE_DEFAULTS)
    rows = keyed([("0", "p", 1, "z"), ("1", "p", 1, "old"), ("1", "p", 2, None)])
    found = combined(rows, rules, by_partition=True)
    assert found.rows.to_pylist() == [{"ts": 1, "w": "z"}, {"ts": 2, "w": "old"}]


def test_keys_to_delete_without_rows() -> None:
    everything = np.ones(3, dtype=bool)
    paths = pa.array(["p", "p", "p"]).dictionary_encode()
    rows = KeyedRows(pa.table({}), pa.array(["a", "b", "a"]), paths, everything, everything)
    assert sorted(combined(rows, EVENT, by_partition=True).keys.to_pylist()) == ["a", "b"]


entry = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), st.integers(0, 3))


@given(st.lists(entry, min_size=1, max_size=20), st.booleans())
def test_combining_is_writing_one_row_after_the_other(
    entries: list[tuple[str, str, int]], is_event_time: bool
) -> None:
    rows = keyed([(*entry, str(at)) for at, entry in enumerate(entries)])
    model: dict[tuple[str, str], tuple[int, str]] = {}
    for at, (key, path, ordering) in enumerate(entries):
        old = model.get((key, path))
        if old is None or not is_event_time or ordering >= old[0]:
            model[key, path] = ordering, str(at)
    found = combined(rows, EVENT if is_event_time else COMMIT, by_partition=True)
    assert sorted(values(found), key=str) == sorted(value for _, value in model.values())
