"""Words of bits are counted with numpy 1 as with numpy 2."""

import numpy as np

from lakewarden.engine.formats.avro.window import bits_of, counted_bits


def test_bits_are_counted_the_same_with_any_numpy() -> None:
    words = np.array([0, 1, 0x7F, (1 << 64) - 1, 1 << 63, (1 << 55) - 1], np.uint64)
    assert counted_bits(words).tolist() == [0, 1, 7, 64, 1, 55]
    assert bits_of(words).tolist() == counted_bits(words).tolist()
