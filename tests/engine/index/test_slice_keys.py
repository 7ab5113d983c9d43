"""Places of wanted keys that were found in several batches or by several workers."""

import numpy as np
import pyarrow as pa
import pytest

from lakewarden.engine.index.incoming import distinct_keys
from lakewarden.engine.index.slice_keys import WantedKeys


@pytest.mark.parametrize("wanted_count", [4, 5000], ids=["many of a few", "few of many"])
def test_places_are_united_in_order_and_without_repetition(wanted_count: int) -> None:
    wanted = WantedKeys(pa.array(map(str, range(wanted_count))))
    parts = [np.array([3, 1]), np.array([], np.int64), np.array([1, 0])]
    assert wanted.united(parts).tolist() == [0, 1, 3]


def test_nothing_found_is_no_place() -> None:
    wanted = WantedKeys(pa.array(["a", "b"]))
    assert wanted.found(iter([pa.array(["c"])])).tolist() == []


@pytest.mark.parametrize("keys", [["b", "a", "c"], ["b", "a", "b"]], ids=["distinct", "repeated"])
def test_the_rows_of_a_key_are_those_that_have_it(keys: list[str]) -> None:
    rows = np.array([2, 0, 1])
    distinct = distinct_keys(pa.array(keys), rows)
    for place, key in enumerate(distinct.keys.to_pylist()):
        found = distinct.rows_of(np.array([place])).tolist()
        assert found == [row for row in rows.tolist() if keys[row] == key]
