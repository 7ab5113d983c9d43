"""Where each record of a delete block begins and ends.

The records are one Avro array, so their places are known only by going through them one by one.
This does no more than that; decoding them all at once is left to the vectorised decoder.
"""

import numpy as np

from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.formats.log.delete_schema import ARRAY_BRANCHES, ARRAY_WRAPPER, BRANCHES
from lakewarden.engine.kernel.errors import CorruptTable

_HEAD_BYTES = 8
_VARINT_BYTES = 10
# A record takes a byte for each of its three unions at least, an array element one.
_SMALLEST_RECORD = 3
_VARINTS = frozenset(
    {"IntWrapper", "LongWrapper", "DateWrapper", "LocalDateWrapper"}
    | {"TimeMicrosWrapper", "TimestampMicrosWrapper"}
)
_FIXED = {"null": 0, "BooleanWrapper": 1, "FloatWrapper": 4, "DoubleWrapper": 8}


def item_bounds(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the delete records, counted from the first byte of the content."""
    walk = _Walk(block)
    starts: list[int] = []
    ends: list[int] = []
    while count := walk.array_count(_SMALLEST_RECORD):
        for _ in range(count):
            starts.append(walk.cursor)
            walk.delete_record()
            ends.append(walk.cursor)
    if walk.cursor != len(walk.content):
        raise walk.corrupt("Bytes follow the last delete record.")
    return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


class _Walk:
    """A cursor over the Avro bytes of a delete block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        # Single bytes of a memoryview are slower to get at than those of bytes.
        self.content = bytes(block.content)
        self.cursor = _HEAD_BYTES

    def corrupt(self, reason: str) -> CorruptTable:
        return self.block.corrupt(reason, within=self.cursor)

    def varint(self) -> int:
        content, cursor = self.content, self.cursor
        value = 0
        for place, byte in enumerate(content[cursor : cursor + _VARINT_BYTES]):
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                self.cursor = cursor + place + 1
                return (value >> 1) ^ -(value & 1)
        raise self.corrupt("A number has no end.")

    def skip(self, size: int) -> None:
        if size < 0 or size > len(self.content) - self.cursor:
            raise self.corrupt(f"{size} bytes are not there.")
        self.cursor += size

    def array_count(self, smallest: int) -> int:
        count = self.varint()
        if count < 0:
            # A negative count is followed by the size of the items in bytes.
            count = -count
            self.varint()
        if count * smallest > len(self.content) - self.cursor:
            raise self.corrupt(f"{count} items do not fit into the block.")
        return count

    def delete_record(self) -> None:
        self.optional_text()
        self.optional_text()
        branch = self.branch(BRANCHES)
        if branch != ARRAY_WRAPPER:
            self.value(branch)
        elif self.branch(("null", "array")) == "array":
            while count := self.array_count(1):
                for _ in range(count):
                    self.value(self.branch(ARRAY_BRANCHES))

    def optional_text(self) -> None:
        if self.branch(("null", "string")) == "string":
            self.skip(self.varint())

    def branch(self, names: tuple[str, ...]) -> str:
        ordinal = self.varint()
        if not 0 <= ordinal < len(names):
            raise self.corrupt(f"{ordinal} is not the number of a type.")
        return names[ordinal]

    def value(self, branch: str) -> None:
        if branch in _VARINTS:
            self.varint()
        elif branch in _FIXED:
            self.skip(_FIXED[branch])
        else:
            self.skip(self.varint())
