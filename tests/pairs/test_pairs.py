"""A few pairs a day: `python -m tests.pairs mor` plays them for as long as one likes."""

from random import Random

import pytest

from tests.pairs.calls import CHANGES, READS
from tests.pairs.pair import SHAPES, Pairs
from tests.sampling import DAY

DRAWN = 3


@pytest.mark.parametrize("kind", SHAPES)
def test_two_calls_at_once_are_two_calls_in_some_order(kind: str) -> None:
    chance, pairs = Random(f"{DAY} {kind}"), Pairs(kind)
    for _ in range(DRAWN):
        first, second = chance.choice([*CHANGES, *READS]), chance.choice([*CHANGES])
        at = chance.randrange(1, 40)
        played = pairs.play(first, second, at)
        assert played is None or not played.wrong, f"{first}, {second} at {at}: {played}"
