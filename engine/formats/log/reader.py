"""Reading log files: any bytes become blocks; what cannot be one becomes a corrupt block.

A block counts only if its length, its reverse pointer and whatever follows it agree. Otherwise
everything up to the next magic is one corrupt block, and it is for the caller to say whether that
is the harmless tail of a failed append or the loss of committed rows.
"""

import re
import struct
from dataclasses import replace

from lakewarden.engine.formats.log.block import LOG_FORMAT_VERSION, MAGIC, Block, BlockKind, Header
from lakewarden.engine.formats.range_source import RangeSource
from lakewarden.engine.kernel.errors import InvalidRequest

_MAGIC_PATTERN = re.compile(re.escape(MAGIC))
_LENGTH_END = len(MAGIC) + 8
_POINTER_SIZE = 8
# Version, kind, header count, content length, footer count and the reverse pointer.
_SMALLEST_LENGTH = 4 + 4 + 4 + 8 + 4 + _POINTER_SIZE
# Enough for the headers of most blocks, of which the schema is the longest.
_HEAD_BYTES = 1 << 16
_WRITTEN_KINDS = frozenset(BlockKind) - {BlockKind.CORRUPT}
_HEADERS = frozenset(Header)
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_TWO_INTS = struct.Struct(">ii")


class _Nonsense(Exception):
    """The bytes at hand are not a block; carries the reason."""


def read_blocks(content: bytes | memoryview, path: str) -> tuple[Block, ...]:
    """The blocks of a log file in file order, without copying their contents."""
    view = memoryview(content).toreadonly().cast("B")
    blocks: list[Block] = []
    position = 0
    while position < len(view):
        try:
            block = _block_at(view, position, path)
        except _Nonsense as nonsense:
            before = blocks.pop() if blocks and blocks[-1].kind is BlockKind.CORRUPT else None
            start, reason = (before.offset, before.reason) if before else (position, str(nonsense))
            block = _corrupt_block(view, start, _next_magic(view, position + 1), path, reason)
        blocks.append(block)
        position = block.offset + block.size_bytes
    return tuple(blocks)


def read_apart(source: RangeSource, path: str) -> tuple[Block, ...]:
    """The blocks of a log file, each with bytes of its own, which are freed with the block.

    A file that is in any way unusual is left to `read_blocks`; its blocks share the file's bytes.
    """
    blocks: list[Block] = []
    position = 0
    while position < source.size:
        block = _apart_at(source, position, path)
        if block is None:
            return read_blocks(source.read(0, source.size), path)
        blocks.append(block)
        position += block.size_bytes
    return tuple(blocks)


def _apart_at(source: RangeSource, position: int, path: str) -> Block | None:
    """The block that begins at a place; None unless one plainly does."""
    head = source.read(position, _LENGTH_END)
    if len(head) < _LENGTH_END or head[: len(MAGIC)] != MAGIC:
        return None
    (length,) = _LONG.unpack_from(head, len(MAGIC))
    if not _SMALLEST_LENGTH <= length <= source.size - position - _LENGTH_END:
        return None
    # What follows has to look like a block, too.
    view = memoryview(source.read(position, _LENGTH_END + length + len(MAGIC)))
    try:
        block = _block_at(view, 0, path)
    except (_Nonsense, InvalidRequest):
        # Reading the whole file will name the position of the damage.
        return None
    at = position + block.content_offset
    return replace(block, offset=position, content_offset=at)


def read_heads(source: RangeSource, path: str) -> tuple[Block, ...]:
    """The blocks of a log file with their headers but without their contents, by small reads.

    Anything out of the ordinary is left to `read_blocks`, and then contents are there as well.
    """
    blocks: list[Block] = []
    position = 0
    while position < source.size:
        block = None if source.size <= _HEAD_BYTES else _head_at(source, position, path)
        if block is None:
            return read_blocks(source.read(0, source.size), path)
        blocks.append(block)
        position += block.size_bytes
    return tuple(blocks)


def _head_at(source: RangeSource, position: int, path: str) -> Block | None:
    """The head of the block that begins at a place; None unless one plainly does."""
    view = memoryview(source.read(position, _HEAD_BYTES))
    if len(view) < _LENGTH_END + _SMALLEST_LENGTH or view[: len(MAGIC)] != MAGIC:
        return None
    (length,) = _LONG.unpack_from(view, len(MAGIC))
    if not _SMALLEST_LENGTH <= length <= source.size - position - _LENGTH_END:
        return None
    version, ordinal = _TWO_INTS.unpack_from(view, _LENGTH_END)
    kind = _known_kind(version, ordinal, path, position)
    try:
        headers, _ = _headers(view, _LENGTH_END + 8, len(view), path)
    except _Nonsense:
        return None
    return Block(kind, path, position, _LENGTH_END + length, memoryview(b""), headers=headers)


def _next_magic(view: memoryview, start: int) -> int:
    found = _MAGIC_PATTERN.search(view, start)
    return int(found.start()) if found else len(view)


def _corrupt_block(view: memoryview, start: int, end: int, path: str, reason: str) -> Block:
    return Block(
        BlockKind.CORRUPT,
        path,
        start,
        end - start,
        view[start:end],
        content_offset=start,
        reason=reason,
    )


def _block_at(view: memoryview, position: int, path: str) -> Block:
    end = _block_end(view, position)
    version, ordinal = _TWO_INTS.unpack_from(view, position + _LENGTH_END)
    kind = _known_kind(version, ordinal, path, position)
    inside_end = end - _POINTER_SIZE
    headers, cursor = _headers(view, position + _LENGTH_END + 8, inside_end, path)
    content_start, content_end = _content_range(view, cursor, inside_end)
    _, cursor = _entries(view, content_end, inside_end)
    if cursor != inside_end:
        raise _Nonsense("The block's parts do not add up to its length.")
    return Block(
        kind,
        path,
        position,
        end - position,
        view[content_start:content_end],
        content_offset=content_start,
        headers=headers,
    )


def _block_end(view: memoryview, position: int) -> int:
    if view[position : position + len(MAGIC)] != MAGIC:
        raise _Nonsense("No block begins here.")
    if position + _LENGTH_END > len(view):
        raise _Nonsense("The file ends inside a block's length.")
    length = int(_LONG.unpack_from(view, position + len(MAGIC))[0])
    end = position + _LENGTH_END + length
    if length < _SMALLEST_LENGTH or end > len(view):
        raise _Nonsense(f"A block of {length} bytes does not fit into the file.")
    (pointer,) = _LONG.unpack_from(view, end - _POINTER_SIZE)
    if pointer != length + len(MAGIC):
        raise _Nonsense("The block's length and its reverse pointer disagree.")
    # A rest shorter than a magic may be the torn beginning of the next block.
    following = view[end : end + len(MAGIC)]
    if len(following) == len(MAGIC) and following != MAGIC:
        raise _Nonsense("No block begins where this one ends.")
    return end


def _known_kind(version: int, ordinal: int, path: str, position: int) -> BlockKind:
    if version != LOG_FORMAT_VERSION:
        raise _unsupported("log_version", f"log format version {version}", path, position)
    if ordinal not in _WRITTEN_KINDS:
        raise _unsupported("log_block", f"the unknown kind {ordinal}", path, position)
    return BlockKind(ordinal)


def _unsupported(code: str, thing: str, path: str, position: int) -> InvalidRequest:
    return InvalidRequest(
        f"unsupported_{code}",
        what=f"{path} has a block of {thing} at byte {position}.",
        why="A newer release may have written it. Reading on without it could return wrong rows.",
        now="Read the table with the engine that wrote it, or use a newer Lakewarden.",
        path=path,
        offset=position,
    )


def _headers(view: memoryview, cursor: int, end: int, path: str) -> tuple[dict[Header, str], int]:
    entries, after = _entries(view, cursor, end)
    headers: dict[Header, str] = {}
    for ordinal, text in entries:
        if ordinal not in _HEADERS:
            raise _unsupported("log_header", f"the unknown header {ordinal}", path, cursor)
        if Header(ordinal) in headers:
            raise _Nonsense(f"The block says {Header(ordinal).name} twice.")
        headers[Header(ordinal)] = text
    return headers, after


def _entries(view: memoryview, cursor: int, end: int) -> tuple[list[tuple[int, str]], int]:
    count, cursor = _int_at(view, cursor, end)
    # Each entry takes eight bytes at least, which bounds the loop by the bytes at hand.
    if count < 0 or count * 8 > end - cursor:
        raise _Nonsense(f"{count} header entries do not fit into the block.")
    entries = []
    for _ in range(count):
        ordinal, cursor = _int_at(view, cursor, end)
        size, cursor = _int_at(view, cursor, end)
        if size < 0 or size > end - cursor:
            raise _Nonsense(f"A header of {size} bytes does not fit into the block.")
        try:
            entries.append((ordinal, str(view[cursor : cursor + size], "utf-8")))
        except UnicodeDecodeError:
            raise _Nonsense("A header is not UTF-8 text.") from None
        cursor += size
    return entries, cursor


def _content_range(view: memoryview, cursor: int, end: int) -> tuple[int, int]:
    if end - cursor < 8:
        raise _Nonsense("The block ends inside its content's length.")
    (size,) = _LONG.unpack_from(view, cursor)
    start = cursor + 8
    if size < 0 or size > end - start:
        raise _Nonsense(f"A content of {size} bytes does not fit into the block.")
    return start, start + size


def _int_at(view: memoryview, cursor: int, end: int) -> tuple[int, int]:
    if end - cursor < 4:
        raise _Nonsense("The block ends inside a number.")
    return int(_INT.unpack_from(view, cursor)[0]), cursor + 4
