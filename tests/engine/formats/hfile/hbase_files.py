"""HFiles as HBase lays them out: previous offsets, checksums, and an index in several levels.

Leaf and intermediate index blocks stand between the data blocks, and index keys may be shortened:
anything above the last key of the block before and not above the first key of the block will do.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.engine.formats.hfile.plain_reader import HEADER, TRAILER_SIZE, Entry

SUFFIX = b"\0\x7f" + b"\xff" * 7 + b"\x04"
IndexEntry = tuple[bytes, int, int]


@dataclass
class HBaseFile:
    """A file in the making."""

    is_packed: bool = True
    content: bytearray = field(default_factory=bytearray)
    previous: dict[bytes, int] = field(default_factory=dict)

    def add(self, kind: bytes, content: bytes) -> tuple[int, int]:
        """Append a block: its offset and size."""
        packed = zlib.compress(content, 6, 31) if self.is_packed else content
        framed = HEADER.size + len(packed)
        checksums = b"\xab\xcd\xef\x01" * -(-framed // 16384)
        offset, before = len(self.content), self.previous.get(kind, -1)
        behind = len(packed) + len(checksums)
        self.content += HEADER.pack(kind, behind, len(content), before, 2, 16384, framed)
        self.content += packed + checksums
        self.previous[kind] = offset
        return offset, HEADER.size + behind


def hbase_file(
    entries: Sequence[Entry],
    *,
    levels: int = 1,
    per_block: int = 3,
    fan_out: int = 2,
    shorten: bool = False,
    is_packed: bool = True,
) -> bytes:
    """A file with the given number of index levels."""
    file = HBaseFile(is_packed)
    index: list[IndexEntry] = []
    last_key = None
    for start in range(0, len(entries), per_block):
        chunk = entries[start : start + per_block]
        place = file.add(b"DATABLK*", b"".join(cell(key, value) for key, value in chunk))
        key = shortened(last_key, chunk[0][0]) if shorten and last_key else chunk[0][0]
        index.append((cell_key(key), *place))
        last_key = chunk[-1][0]
    for level in range(1, levels):
        kind = b"IDXLEAF2" if level == 1 else b"IDXINTE2"
        groups = [index[at : at + fan_out] for at in range(0, len(index), fan_out)]
        index = [(group[0][0], *file.add(kind, leaf(group))) for group in groups]
    meta_place = file.add(b"METABLKc", b"a filter")
    load_on_open = len(file.content)
    # What HBase puts behind the entries of a root index is nobody's business.
    file.add(b"IDXROOT2", root(index) + b"mid key")
    file.add(b"IDXROOT2", root([(b"bloomFilter", *meta_place)]))
    info_offset, _ = file.add(b"FILEINF2", file_info(entries))
    numbers = {1: info_offset, 2: load_on_open, 5: len(index), 6: 1, 7: len(entries), 8: levels}
    return bytes(file.content) + trailer(numbers | {12: 1 if is_packed else 2})


def cell(key: bytes, value: bytes) -> bytes:
    """A cell of a data block."""
    return struct.pack(">ii", len(key) + 12, len(value)) + cell_key(key) + value + b"\0"


def cell_key(key: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key + SUFFIX


def shortened(before: bytes, key: bytes) -> bytes:
    """The shortest beginning of a key that is above the key before it."""
    return next(key[:size] for size in range(1, len(key) + 1) if key[:size] > before)


def leaf(entries: Sequence[IndexEntry]) -> bytes:
    """A leaf or intermediate index block."""
    parts = [struct.pack(">qi", offset, size) + key for key, offset, size in entries]
    starts = [sum(len(part) for part in parts[:number]) for number in range(len(parts) + 1)]
    return struct.pack(f">{len(starts) + 1}i", len(parts), *starts) + b"".join(parts)


def root(entries: Sequence[IndexEntry]) -> bytes:
    """A root index block."""
    return b"".join(
        struct.pack(">qi", offset, size) + hadoop_integer(len(key)) + key
        for key, offset, size in entries
    )


def hadoop_integer(number: int) -> bytes:
    if number < 128:
        return bytes([number])
    return bytes([0x8F, number]) if number < 256 else b"\x8e" + number.to_bytes(2, "big")


def file_info(entries: Sequence[Entry]) -> bytes:
    """A file info block."""
    pairs = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": bytes(8),
        b"hfile.LASTKEY": cell_key(entries[-1][0]) if entries else b"",
        b"schema": b'"bytes"',
    }
    message = b"".join(
        b"\x0a" + sized(b"\x0a" + sized(name) + b"\x12" + sized(value))
        for name, value in pairs.items()
    )
    return b"PBUF" + sized(message)


def trailer(numbers: dict[int, int]) -> bytes:
    """The trailer with the given fields."""
    message = b"".join(bytes([number << 3]) + varint(value) for number, value in numbers.items())
    return (b'TRABLK"$' + sized(message)).ljust(TRAILER_SIZE - 4, b"\0") + b"\3\0\0\3"


def sized(content: bytes) -> bytes:
    return varint(len(content)) + content


def varint(number: int) -> bytes:
    octets = bytearray()
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes([*octets, number])
