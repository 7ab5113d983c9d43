"""Where the records of a delete block begin and end, found quickly where they are plain.

The records are one Avro array, which is read item by item; knowing where each begins, all can be
decoded at once. Nearly all delete records have a key, a partition and an ordering value that is a
number. Anything else, and anything wrong, is left to the general decoder.
"""

import numpy as np

from lakewarden.engine.formats.log.delete_schema import BRANCHES

_NUMBERS = {
    "IntWrapper",
    "LongWrapper",
    "DateWrapper",
    "TimeMicrosWrapper",
    "TimestampMicrosWrapper",
}
# A union's branch n is written as the zigzag number 2n.
_NUMBER_BRANCHES = frozenset(2 * place for place, name in enumerate(BRANCHES) if name in _NUMBERS)
_NULL_BRANCH = 0
_TEXT_BRANCH = 2
_MORE = 0x80


def plain_bounds(octets: bytes, start: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Starts and ends of the records of an array at `start`, or None if they are not all plain."""
    try:
        count, cursor = _size(octets, start)
        starts = []
        for _ in range(count):
            starts.append(cursor)
            # The key, then the partition.
            for _ in range(2):
                if octets[cursor] != _TEXT_BRANCH:
                    return None
                size, cursor = _size(octets, cursor + 1)
                cursor += size
            branch = octets[cursor]
            cursor += 1
            if branch in _NUMBER_BRANCHES:
                while octets[cursor] >= _MORE:
                    cursor += 1
                cursor += 1
            elif branch != _NULL_BRANCH:
                return None
    except (IndexError, ValueError):
        return None
    # An array ends with an empty block, and one without items is nothing else.
    if octets[cursor:] != (b"\0" if count else b""):
        return None
    bounds = np.array([*starts, cursor], dtype=np.int64)
    return bounds[:-1], bounds[1:]


def _size(octets: bytes, cursor: int) -> tuple[int, int]:
    """A length or count of up to four bytes, and where it ends."""
    value = shift = 0
    for place in range(cursor, cursor + 4):
        value |= (octets[place] & 0x7F) << shift
        if octets[place] < _MORE:
            if value & 1:
                raise ValueError("negative")
            return value >> 1, place + 1
        shift += 7
    raise ValueError("too large")
