"""A twin of the HFile reader for tests: plain loops, one entry after the other, no checks."""

import struct
import zlib
from dataclasses import dataclass

HEADER = struct.Struct(">8siiqbii")
TRAILER_SIZE = 4096

Entry = tuple[bytes, bytes]


@dataclass(frozen=True)
class PlainBlock:
    """A block as it stands in the file; `content` is unpacked."""

    kind: bytes
    previous: int
    checksum_type: int
    checksums: bytes
    content: bytes


def plain_trailer(file: bytes) -> dict[int, int | bytes]:
    """The fields of the trailer by number."""
    raw = file[-TRAILER_SIZE:]
    assert raw.startswith(b'TRABLK"$')
    size, at = plain_varint(raw, 8)
    end = at + size
    fields: dict[int, int | bytes] = {}
    while at < end:
        tag, at = plain_varint(raw, at)
        number, at = plain_varint(raw, at)
        if tag & 7:
            fields[tag >> 3], at = raw[at : at + number], at + number
        else:
            fields[tag >> 3] = number
    return fields


def plain_varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return number, at


def plain_blocks(file: bytes) -> list[PlainBlock]:
    """All blocks in file order."""
    is_packed = plain_trailer(file)[12] == 1
    blocks, at = [], 0
    while at < len(file) - TRAILER_SIZE:
        kind, behind, _, previous, checksum_type, _, framed = HEADER.unpack_from(file, at)
        packed = file[at + HEADER.size : at + framed]
        content = zlib.decompress(packed, 31) if is_packed else packed
        end = at + HEADER.size + behind
        blocks.append(PlainBlock(kind, previous, checksum_type, file[at + framed : end], content))
        at = end
    return blocks


def plain_entries(file: bytes) -> list[Entry]:
    """All entries, found by going over the file without its index."""
    entries = []
    for block in plain_blocks(file):
        at = 0
        while block.kind == b"DATABLK*" and at < len(block.content):
            key_size, value_size, content_size = struct.unpack_from(">iih", block.content, at)
            value_start = at + 8 + key_size
            key = block.content[at + 10 : at + 10 + content_size]
            entries.append((key, block.content[value_start : value_start + value_size]))
            at = value_start + value_size + 1
    return entries
