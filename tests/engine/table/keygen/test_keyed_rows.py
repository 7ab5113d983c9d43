"""Rows with their keys, picked by number."""

import numpy as np
import pyarrow as pa
import pytest

from lakewarden.engine.table.keygen.key_scheme import KeyedRows

ROWS = KeyedRows(
    pa.table({"v": [0, 1, 2, 3]}),
    pa.array(["a", "b", "c", "d"]),
    pa.array(["p", "q", "p", "q"]).dictionary_encode(),
    np.array([False, True, False, True]),
    np.array([False, False, False, True]),
)


@pytest.mark.parametrize(
    "places", [[], [2], [1, 2, 3], [0, 2], [3, 1], [1, 1], [2, 1, 0], [0, 2, 2]]
)
def test_rows_are_picked_by_their_places(places: list[int]) -> None:
    taken = ROWS.take(np.array(places, np.int64))
    assert taken.rows.column("v").to_pylist() == places
    assert taken.keys.to_pylist() == ["abcd"[place] for place in places]
    assert taken.partitions.to_pylist() == ["pqpq"[place] for place in places]
    assert taken.is_delete.tolist() == [bool(place % 2) for place in places]
    assert taken.is_unconditional.tolist() == [place == 3 for place in places]


def test_keys_without_rows_are_picked_too() -> None:
    bare = KeyedRows(pa.table({}), *(getattr(ROWS, n) for n in ROWS.__slots__[1:]))
    assert bare.take(np.array([1, 2])).keys.to_pylist() == ["b", "c"]
