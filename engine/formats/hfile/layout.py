"""The frame of an HFile: magics, block headers, and the numbers that readers and writers share.

A file is data blocks, then meta blocks, then what is loaded on opening (data index, meta index,
file info), then the trailer. Every integer is big-endian.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from lakewarden.engine.kernel.errors import InvalidRequest, corrupt

DATA = b"DATABLK*"
LEAF_INDEX = b"IDXLEAF2"
INTERMEDIATE_INDEX = b"IDXINTE2"
ROOT_INDEX = b"IDXROOT2"
META = b"METABLKc"
FILE_INFO = b"FILEINF2"
TRAILER = b'TRABLK"$'

TRAILER_SIZE = 4096
MAJOR_VERSION = 3
BYTES_PER_CHECKSUM = 16384
NO_CHECKSUM = 0
NO_OFFSET = -1

# Magic, size on disk behind the header, size when unpacked, offset of the previous block of the
# kind, checksum type, bytes per checksum, size on disk with the header and without the checksums.
_HEADER = struct.Struct(">8siiqbii")
HEADER_SIZE = _HEADER.size

# A cell of a data block: int32 key and value sizes, then the key (int16 size, content, and a suffix
# that is the same in every cell: no family, the highest timestamp, type Put), the value, a version.
KEY_SUFFIX = b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\x04"
CELL_VERSION = b"\x00"
CELL_SIZES_BYTES = 8
CONTENT_SIZE_BYTES = 2
CONTENT_OFFSET = CELL_SIZES_BYTES + CONTENT_SIZE_BYTES
# What a key has besides its content, and what a cell has besides key content and value.
KEY_EXTRA_BYTES = CONTENT_SIZE_BYTES + len(KEY_SUFFIX)
CELL_EXTRA_BYTES = CELL_SIZES_BYTES + len(CELL_VERSION)
CELL_BYTES_MIN = CELL_EXTRA_BYTES + KEY_EXTRA_BYTES
# The longest key whose length fits in the int16 before it.
KEY_BYTES_MAX = (1 << 15) - 1


class Codec(IntEnum):
    """How the blocks of a file are packed, by the number in its trailer."""

    GZIP = 1
    NONE = 2


# Codecs of HBase that Hudi never chooses.
_OTHER_CODECS = {0: "LZO", 3: "SNAPPY", 4: "LZ4", 5: "BZIP2", 6: "ZSTD"}


def codec_of(number: int, path: str, offset: int) -> Codec:
    """The codec with a number; those that HBase has besides ours are refused by name."""
    if number in _OTHER_CODECS:
        name = _OTHER_CODECS[number]
        raise InvalidRequest(
            "unsupported_hfile_codec",
            what=f"{path} is compressed with {name}.",
            why="Hudi's HFiles use GZIP or no compression.",
            now="Write the file again with hoodie.hfile.compression.algorithm=GZ.",
            path=path,
            codec=name,
        )
    try:
        return Codec(number)
    except ValueError as cause:
        raise corrupt(path, offset, f"There is no HFile codec {number}.") from cause


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The 33 bytes before a block's content."""

    kind: bytes
    packed_bytes: int
    unpacked_bytes: int
    checksum_bytes: int

    @property
    def block_bytes(self) -> int:
        """From this header to the next."""
        return HEADER_SIZE + self.packed_bytes + self.checksum_bytes


def parse_header(raw: bytes | memoryview, at: int, path: str, offset: int) -> BlockHeader:
    """The header at a position of `raw`; `offset` is where that is in the file."""
    if len(raw) - at < HEADER_SIZE:
        raise corrupt(path, offset, "A block header is cut off.")
    kind, behind_header, unpacked, _, _, _, framed = _HEADER.unpack_from(raw, at)
    packed = framed - HEADER_SIZE
    if unpacked < 0 or not 0 <= packed <= behind_header:
        raise corrupt(path, offset, "The sizes in a block header contradict each other.")
    return BlockHeader(kind, packed, unpacked, behind_header - packed)


def frame(kind: bytes, packed: bytes | memoryview, unpacked_bytes: int) -> tuple[bytes, bytes]:
    """What stands before and behind a block's packed content.

    Like the Java writer of Hudi: no previous offset, and empty checksum slots.
    """
    framed = HEADER_SIZE + len(packed)
    checksums = bytes(4 * -(-framed // BYTES_PER_CHECKSUM))
    header = _HEADER.pack(
        kind,
        len(packed) + len(checksums),
        unpacked_bytes,
        NO_OFFSET,
        NO_CHECKSUM,
        BYTES_PER_CHECKSUM,
        framed,
    )
    return header, checksums
