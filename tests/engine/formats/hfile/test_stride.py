"""Cell boundaries are found as a plain walk over the cells finds them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.hfile.index import BrokenCell, Stride
from tests.engine.formats.hfile.hbase_files import cell

cells = st.lists(
    st.tuples(st.binary(max_size=3), st.binary(max_size=4)).map(lambda entry: cell(*entry)),
    min_size=1,
    max_size=200,
)


def boundaries(parts: list[bytes]) -> list[int]:
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    return starts


@settings(deadline=None)
@given(cells, st.data())
def test_a_boundary_is_the_last_one_not_behind_the_target(
    parts: list[bytes], data: st.DataObject
) -> None:
    block, starts, stride = b"".join(parts), boundaries(parts), Stride()
    for _ in range(5):
        target = data.draw(st.integers(0, len(block)))
        start = data.draw(st.sampled_from([at for at in starts if at <= target]))
        assert stride.boundary(block, start, target) == max(at for at in starts if at <= target)


@pytest.mark.parametrize("kinds", [1, 5, 31, 200])
def test_a_walk_is_right_before_and_after_sizes_are_learned(kinds: int) -> None:
    parts = [cell(b"key", bytes(number * number % kinds)) for number in range(3_000)]
    block, starts, stride = b"".join(parts), boundaries(parts), Stride()
    for _ in range(3):
        for target in starts[:-1:50]:
            assert stride.boundary(block, 0, target) == target
            assert stride.boundary(block, 0, target + 20) == target


def test_a_cell_with_impossible_sizes_is_told() -> None:
    with pytest.raises(BrokenCell):
        Stride().boundary(b"\xff" * 100, 0, 50)
