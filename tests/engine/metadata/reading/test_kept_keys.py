"""Kept keys find what a dictionary of the same hashes finds."""

import numpy as np

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.metadata.reading.kept_keys import Hashes, KeptKeys, SortedKeys
from lakewarden.engine.metadata.reading.partition import BaseMark

NOWHERE = BaseMark("", 0, "", None)
LARGEST = (1 << 64) - 1


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def test_names_of_homes_without_keys_are_forgotten() -> None:
    one, other = FileGroupId("", "one"), FileGroupId("", "other")
    homes = (*(FileGroupId("", f"old{number}") for number in range(9)), one, other)
    nine, ten = (np.array([number], np.int32) for number in (9, 10))
    kept = KeptKeys(
        NOWHERE,
        Hashes(1),
        base=SortedKeys(words(5), words(5), nine),
        folded=SortedKeys(words(1, 3), words(1, 3), np.array([10, -1], np.int32)),
        parts=(SortedKeys(words(7), words(7), ten),),
        blocks=(("", 0, "", 0),),
        homes=homes,
    ).merged()
    assert kept.homes == (one, other)
    assert kept.base.homes.tolist() == [1, 0]
    assert kept.parts[0].homes.tolist() == [1]


def test_hashes_that_share_one_half_are_told_apart() -> None:
    homes = np.array([0, 1, 2, 3, 4], np.int32)
    kept = SortedKeys.of(words(7, 7, 1, 7, 9), words(5, 3, 3, 9, 3), homes)
    asked = words(7, 7, 7, 1, 9, 9, 8), words(9, 5, 3, 3, 3, 4, 3)
    assert kept.find(*asked).tolist() == [3, 0, 1, 2, 4, -2, -2]


def test_of_a_hash_that_comes_again_the_last_home_counts() -> None:
    kept = SortedKeys.of(
        words(7, 7, 7, 7), words(5, 3, 5, 5), np.array([0, 1, 2, -1], np.int32), in_parts=True
    )
    assert len(kept) == 2
    assert kept.find(words(7, 7), words(3, 5)).tolist() == [1, -1]


def test_many_hashes_are_found_as_in_a_dictionary() -> None:
    chance = np.random.default_rng(5)
    for count in (1, 2, 31, 32, 33, 1_000, 5_000):
        high, low = chance.integers(0, LARGEST, (2, count), np.uint64, endpoint=True)
        # The borders of the ranges, and crowds that share the first half or the first bits.
        high[: count // 8] = chance.choice(words(0, 1, 1 << 63, LARGEST), count // 8)
        high[count // 8 : count // 4] >>= np.uint64(20)
        homes = np.arange(count, dtype=np.int32)
        known = dict(
            zip(zip(high.tolist(), low.tolist(), strict=True), homes.tolist(), strict=True)
        )
        asked = (
            np.concatenate([high, high, words(0, LARGEST)]),
            np.concatenate([low, low + np.uint64(1), words(0, LARGEST)]),
        )
        pairs = zip(*(one.tolist() for one in asked), strict=True)
        found = SortedKeys.of(high, low, homes).find(*asked)
        assert found.tolist() == [known.get(pair, -2) for pair in pairs]


def test_of_many_parts_the_last_home_counts() -> None:
    part = np.arange(4_000, dtype=np.uint64)
    twice, homes = np.concatenate([part, part]), np.arange(8_000, dtype=np.int32)
    kept = SortedKeys.of(twice, twice, homes, in_parts=True)
    assert kept.find(part, part).tolist() == homes[4_000:].tolist()
