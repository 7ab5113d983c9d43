"""The keys of file groups tell how many buckets there are, or what is possible."""

import pyarrow as pa
import pytest

from lakewarden.engine.index.buckets import bucket_hashes, bucket_numbers
from lakewarden.engine.index.from_files import Division, GroupKeys, division
from lakewarden.engine.index.kinds import Buckets


@pytest.mark.parametrize("hashed", [("a",), ("b",), ("a", "b")])
@pytest.mark.parametrize("count", [1, 2, 12, 256])
def test_the_true_count_is_always_possible(count: int, hashed: tuple[str, ...]) -> None:
    buckets = Buckets(hashed, count, ("a", "b"))
    keys = pa.array([f"a:{number},b:{number * 7}" for number in range(500)])
    numbers = bucket_numbers(keys, buckets)
    assert ((bucket_hashes(keys, buckets) - numbers) % count == 0).all()
    groups = [
        GroupKeys(number, keys.filter(pa.array(numbers == number)), ("a", "b"))
        for number in sorted(set(numbers.tolist()))
    ]
    reported = division(hashed, groups, groups[-1].number + 1)
    assert reported.allows(count)
    assert reported.is_possible
    for others in {("a",), ("b",), ("a", "b")} - {hashed} if count == 256 else ():
        assert not division(others, groups, groups[-1].number + 1).is_possible


def test_a_count_is_certain_only_where_no_other_one_is_possible() -> None:
    assert Division(("id",), 12, 7).only == 12
    assert Division(("id",), 12, 6).only is None
    assert Division(("id",), 0, 1).only is None
    assert Division(("id",), 3, 4).only is None
