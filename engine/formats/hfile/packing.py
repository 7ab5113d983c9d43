"""Packing of blocks: gzip by Intel's library where there is one, by the standard one elsewhere."""

import zlib
from types import ModuleType

from lakewarden.engine.formats.hfile.layout import Codec
from lakewarden.engine.kernel.errors import corrupt

gzip_library: ModuleType
try:
    from isal import isal_zlib as gzip_library
except ImportError:
    gzip_library = zlib

# A gzip stream with its own header, in zlib's counting of window bits.
_GZIP_STREAM = 31
# Each library's own scale. At level 1 Intel's packs record index entries as small as zlib's 6.
_LEVEL = 6 if gzip_library is zlib else 1

# Deflate cannot do better than 1032 to 1: what claims more is refused before any memory is taken.
DEFLATE_RATIO_MAX = 1032
_DEFLATE_SLACK = 1024
# Java's arrays end at 2 GiB; half of that is more than any block of a sane table.
BLOCK_BYTES_MAX = 1 << 30
# Only bloom filters of few values pack better, some hundred to one: each is as long as a full one.
EXPANSION_MAX = 100
BLOCK_BYTES_FREE = 16 << 20
# The filters of so many files with few rows stand in one file: some hundred of them.
FILE_BYTES_FREE = 64 << 20

_ERRORS: tuple[type[Exception], ...] = (zlib.error, gzip_library.error)


def pack(content: bytes | memoryview, codec: Codec) -> bytes | memoryview:
    """A block's content as it goes to the file."""
    if codec is Codec.NONE:
        return content
    packed: bytes = gzip_library.compress(content, _LEVEL, _GZIP_STREAM)
    return packed


def unpack(packed: bytes | memoryview, unpacked_bytes: int, path: str, offset: int) -> bytes:
    """The content of a gzip block, which is exactly as long as its header says."""
    _check_claim(len(packed), unpacked_bytes, path, offset)
    stream = gzip_library.decompressobj(_GZIP_STREAM)
    try:
        # One byte more than promised shows a longer block, and lets the stream check its end.
        content: bytes = stream.decompress(packed, unpacked_bytes + 1)
    except _ERRORS as cause:
        raise corrupt(path, offset, f"A block does not unpack: {cause}.") from cause
    if len(content) != unpacked_bytes or not stream.eof:
        raise corrupt(path, offset, "A block unpacks to another size than its header says.")
    return content


def expanded_bytes_max(packed_bytes: int) -> int:
    """How much some bytes may unpack to in all, so that a small file takes no large memory."""
    return max(packed_bytes * EXPANSION_MAX, FILE_BYTES_FREE)


def _check_claim(packed_bytes: int, unpacked_bytes: int, path: str, offset: int) -> None:
    possible = packed_bytes * DEFLATE_RATIO_MAX + _DEFLATE_SLACK
    likely = max(packed_bytes * EXPANSION_MAX, BLOCK_BYTES_FREE)
    if unpacked_bytes > min(possible, BLOCK_BYTES_MAX, likely):
        raise corrupt(path, offset, f"A block claims to unpack to {unpacked_bytes} bytes.")
