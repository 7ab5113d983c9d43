"""The bloom indexes: footers of base files tell which keys they cannot have."""

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.index.key_file import KeyFile


def possible_by_footer(file: KeyFile, wanted: pa.Array) -> pa.Array:
    """The wanted keys within a file's key range that its bloom filter does not rule out.

    Files without such footers, which other writers may leave, rule out nothing.
    """
    footer = key_footer(file.metadata)
    possible = wanted
    if footer.min_key is not None and footer.max_key is not None:
        # Java writes the bounds in the order of its strings, which differs from that of bytes
        # behind the basic plane of Unicode; such keys are left to the filter.
        low, high = footer.min_key, footer.max_key
        if low.isascii() and high.isascii():
            inside = pc.and_(pc.greater_equal(wanted, low), pc.less_equal(wanted, high))
            possible = wanted.filter(inside)
    bloom = footer.bloom_filter(file.path)
    if bloom is None or not len(possible):
        return possible
    return possible.filter(pa.array(bloom.might_contain(possible)))
