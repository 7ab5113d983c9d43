"""Key places: no place of a key is ever missed, and what is kept belongs to one file."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.read.merge.key_places import candidates, hashes_of

KEYS = st.lists(st.text(min_size=1, max_size=12), max_size=60)


@given(KEYS, KEYS)
def test_each_place_of_a_key_is_among_the_candidates(keys: list[str], wanted: list[str]) -> None:
    parts = [pa.array(keys[:20], pa.string()), pa.array(keys[20:], pa.string())]
    found = candidates(hashes_of(parts), pa.array(wanted, pa.string()))
    assert {at for at, key in enumerate(keys) if key in wanted} <= set(found.tolist())
    assert found.tolist() == sorted(set(found.tolist()))


@pytest.mark.parametrize("count", [1, 8, 9, 500])
def test_hardly_any_other_place_is(count: int) -> None:
    keys = pa.array([f"key {number}" for number in range(20_000)])
    wanted = keys.take(pa.array(np.arange(0, 20_000, 20_000 // count)[:count]))
    assert len(candidates(hashes_of([keys]), wanted)) <= count + 1


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
