"""Key places: no place of a key is ever missed, and what is kept belongs to one file."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.read.merge.key_index import HashedKeys, hashes_of

KEYS = st.lists(st.text(min_size=1, max_size=12), max_size=60)


@given(KEYS, KEYS)
def test_each_place_of_a_key_is_among_the_candidates(keys: list[str], wanted: list[str]) -> None:
    parts = [pa.array(keys[:20], pa.string()), pa.array(keys[20:], pa.string())]
    found = HashedKeys(pa.array(wanted, pa.string())).places(hashes_of(parts))
    assert {at for at, key in enumerate(keys) if key in wanted} <= set(found.tolist())
    assert found.tolist() == sorted(set(found.tolist()))


@pytest.mark.parametrize("count", [1, 8, 9, 500])
def test_hardly_any_other_place_is(count: int) -> None:
    keys = pa.array([f"key {number}" for number in range(20_000)])
    wanted = keys.take(pa.array(np.arange(0, 20_000, 20_000 // count)[:count]))
    assert len(HashedKeys(wanted).places(hashes_of([keys]))) <= count + 1


def test_a_table_made_anew_at_the_same_path_is_looked_into_anew(tmp_path: Path) -> None:
    """As many rows and bytes, other keys: what was kept of the first table says nothing."""
    schema = pa.schema([("id", pa.string()), ("v", pa.int32())])
    for name in ("first", "other"):
        table = Table.create(str(tmp_path / name), schema, key=["id"])
        table.bulk_insert([{"id": f"{name}{number:06}", "v": 1} for number in range(20_000)])
    keys = {"id": [f"first{number:06}" for number in (0, 19_999)]}
    found: list[Any] = [("id", "in", keys["id"])]
    first, other = (Table(str(tmp_path / name)) for name in ("first", "other"))
    assert first.read_arrow(["id"], found).sort_by("id").to_pydict() == keys
    (slice_,) = first.file_slices()
    (theirs,) = other.file_slices()
    assert slice_.base_file is not None
    assert theirs.base_file is not None
    own, new = (
        tmp_path / "first" / slice_.base_file.name,
        tmp_path / "other" / theirs.base_file.name,
    )
    own.write_bytes(new.read_bytes())
    assert len(first.read_arrow(["id"], found, use_metadata=False)) == 0
    found = [("id", "=", "other000007")]
    assert first.read_arrow(["id"], found, use_metadata=False)["id"].to_pylist() == ["other000007"]


MANY = pa.schema(
    [("id", pa.string()), ("v", pa.int32()), ("kind", pa.string()), ("ts", pa.int64())]
)


def made(path: Path, type_: str) -> Table:
    """A table with several row groups, in which texts repeat."""
    table = Table.create(str(path), MANY, key=["id"], ordering=["ts"], type=type_)
    numbers = np.random.default_rng(5).permutation(40_000).tolist()
    table.bulk_insert(
        [{"id": f"k{at}", "v": at, "kind": f"kind {at % 3}", "ts": 1} for at in numbers]
    )
    if type_ == "mor":
        table.upsert([{"id": f"k{at}", "v": -at, "kind": None, "ts": 2} for at in range(0, 99, 7)])
    return table


@pytest.mark.parametrize("type_", ["cow", "mor"])
@pytest.mark.parametrize("columns", [None, ["id"], ["kind", "v"]])
def test_a_lookup_finds_what_a_read_of_all_rows_has(
    tmp_path: Path, type_: str, columns: list[str] | None
) -> None:
    table = made(tmp_path, type_)
    every = table.read_arrow()
    for count in (1, 3, 40, 700, 2_400, 4_000):
        keys = [f"k{at}" for at in range(0, 60_000, 60_000 // count)]
        there = pc.is_in(every["id"], value_set=pa.array(keys))
        expected = every.filter(there).sort_by("id").select(columns or every.column_names)
        # The second look knows more than the first one.
        for _ in range(2):
            found = table.lookup(
                keys, None if columns is None else [*columns, "_hoodie_record_key"]
            )
            ordered = found.sort_by("_hoodie_record_key").select(expected.column_names)
            assert ordered.equals(expected)
            assert table.read_arrow(columns, [("id", "in", keys)]).num_rows == len(expected)


@pytest.mark.parametrize("count", [2, 900])
def test_a_file_put_in_the_place_of_another_is_looked_into_anew(tmp_path: Path, count: int) -> None:
    """However many keys are asked for at the first look."""
    first, other = made(tmp_path / "first", "cow"), made(tmp_path / "other", "cow")
    other.update_where([("v", "<", 20_000)], {"v": -1})
    other.delete_where([("v", ">=", 39_000)])
    keys = [f"k{at}" for at in range(39_500, 39_500 - count, -1)]
    found: list[Any] = [("id", "in", keys)]
    for _ in range(2):
        assert first.read_arrow(["v"], found).num_rows == count
    (slice_,), (theirs,) = first.file_slices(), other.file_slices()
    assert slice_.base_file is not None
    assert theirs.base_file is not None
    new = (tmp_path / "other" / theirs.base_file.name).read_bytes()
    (tmp_path / "first" / slice_.base_file.name).write_bytes(new)
    left = [key for key in keys if int(key[1:]) < 39_000]
    assert first.read_arrow(["v"], found, use_metadata=False).num_rows == len(left)
