"""Repeated keys are found whatever the share of hashes that is held at a time."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from lakewarden.engine.index.repeated_keys import Hashes, KeySearch, shared_hashes
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.writing.shapes import Shape


def parts(seed: int) -> list[Hashes]:
    random = Random(seed)
    return [
        np.array([random.randrange(200) for _ in range(random.randrange(60))], np.uint64)
        for _ in range(5)
    ]


@pytest.mark.parametrize("hashes_max", [1, 2, 7, 50, 1000])
def test_shares_together_have_each_repeated_hash_once(hashes_max: int) -> None:
    for seed in range(20):
        given = parts(seed)

        def again(given: list[Hashes] = given) -> Iterator[Hashes]:
            return iter(given)

        counts = Counter(one for part in given for one in part.tolist())
        expected = sorted(one for one, count in counts.items() if count > 1)
        shares = [share.tolist() for share in shared_hashes(again, hashes_max)]
        assert sorted(one for share in shares for one in share) == expected
        assert all(len(share) <= hashes_max for share in shares)


@pytest.mark.parametrize("is_global", [True, False])
@pytest.mark.parametrize("hashes_max", [2, 1000])
def test_a_key_of_two_partitions_repeats_where_the_index_is_over_all(
    hashes_max: int, *, is_global: bool
) -> None:
    table = Shape("mor").create("", storage=fresh_memory_storage())
    row = {"ts": 1, "v": 1.0, "name": "n"}
    table.insert([{"id": key, "p": place, **row} for key in "abcdefg" for place in "xy"])
    table.insert([{"id": "c", "p": "x", **row}], small_file_limit=0)
    search = KeySearch(table.state(), LocalExecutor(2), is_global, hashes_max)
    found = [key for part in search.repeated() for key in part.keys.to_pylist()]
    assert sorted(found) == (list("abcdefg") if is_global else ["c"])
