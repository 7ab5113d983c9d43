"""Reading log files: any bytes become blocks; what cannot be one becomes a corrupt block.

A block counts only if its length, its reverse pointer and whatever follows it agree. Otherwise
everything up to the next magic is one corrupt block, and it is for the caller to say whether that
is the harmless tail of a failed append or the loss of committed rows.

Data blocks: their records as Arrow tables, decoded no further than the wanted columns.

Which log blocks of a slice count, and in which order.

Rollback commands drop blocks that stand before them; log compaction puts one set of blocks in place
of several others.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import (
    DATA_KINDS,
    LOG_FORMAT_VERSION,
    MAGIC,
    Block,
    BlockKind,
    Header,
    rolled_back_instant,
)
from lakewarden.engine.formats.range_source import BufferSource, RangeSource
from lakewarden.engine.kernel.errors import Defect, InvalidRequest

AVRO_BLOCK_VERSION = 3
_HEAD = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class RecordChoice:
    """Which records of a block are wanted, as one of its columns tells."""

    column: str
    # Their positions among the rows of a table of the column, ascending.
    positions: Callable[[pa.Table], npt.NDArray[np.int64]]


def records(
    block: Block, columns: Sequence[str] | None = None, choice: RecordChoice | None = None
) -> pa.Table:
    """The records of an Avro, Parquet or CDC block, in block order.

    Wanted columns that the block does not have are skipped. Of records that are not chosen only the
    column that chooses is read; the others are checked. An HFile block has keys and values instead
    of columns: read its `range_source`.
    """
    match block.kind:
        case BlockKind.AVRO | BlockKind.CDC:
            return _avro_records(block, columns, choice)
        case BlockKind.PARQUET:
            rows = _parquet_records(block, columns)
            return rows if choice is None else rows.take(pa.array(choice.positions(rows)))
        case _:
            raise Defect(
                "block_without_columns",
                what=f"{block.path} has no table of records at byte {block.offset}.",
                why=f"The block is a {block.kind.name} block.",
                path=block.path,
            )


def range_source(block: Block) -> BufferSource:
    """The content of an HFile block, which is a whole HFile, for random access."""
    return BufferSource(block.content)


def _avro_records(
    block: Block, columns: Sequence[str] | None, choice: RecordChoice | None
) -> pa.Table:
    content = block.content
    if len(content) < _HEAD.size:
        raise block.corrupt("The data block ends before its version and record count.")
    version, count = _HEAD.unpack_from(content)
    if not 1 <= version <= AVRO_BLOCK_VERSION:
        raise block.corrupt(f"{version} is no version of a data block.")
    origin = block.content_offset + _HEAD.size
    encoded = content[_HEAD.size :]
    starts, ends = split_length_prefixed(encoded, count, block.path, origin=origin)
    schema = parse_schema(block.schema_text, block.path)
    known = _known([field.name for field in schema.fields], columns)
    decode = partial(decode_records, encoded, schema=schema, path=block.path, origin=origin)
    if choice is not None:
        at = choice.positions(decode(starts, ends, columns=[choice.column]))
        starts, ends = starts[at], ends[at]
    return decode(starts, ends, columns=known)


def _parquet_records(block: Block, columns: Sequence[str] | None) -> pa.Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(block.content)))
        known = _known(file.schema_arrow.names, columns)
        table = file.read(known, use_threads=False)
        # Parquet accepts any bytes as text, and later steps trust the values: so they are checked.
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise block.corrupt(f"The block is no readable Parquet file: {reason}.") from None


def _known(present: Sequence[str], wanted: Sequence[str] | None) -> list[str] | None:
    if wanted is None:
        return None
    return [name for name in wanted if name in present]


_MERGED_KINDS = DATA_KINDS | {BlockKind.DELETE}


def effective_blocks(
    blocks: Iterable[Block],
    is_valid_instant: Callable[[str], bool],
    *,
    keeps_orphans: bool = True,
) -> tuple[Block, ...]:
    """The data and delete blocks to merge, oldest first.

    Blocks come in slice order. Those of one instant stay together, where the first of them stands.
    Corrupt and CDC blocks are skipped: whether a corrupt block is an error is for the caller to
    say before. Orphans are log compactions of which nothing that they replace is there.
    """
    by_instant: dict[str, list[Block]] = {}
    for block in blocks:
        if block.kind is BlockKind.COMMAND:
            by_instant.pop(rolled_back_instant(block), None)
        elif block.kind in _MERGED_KINDS:
            if not block.instant:
                raise block.corrupt("The block does not say which instant wrote it.")
            if is_valid_instant(block.instant):
                by_instant.setdefault(block.instant, []).append(block)
    counting = {
        instant: own
        for instant, own in by_instant.items()
        if _counts(instant, by_instant, keeps_orphans=keeps_orphans)
    }
    return tuple(block for instant in _in_force(counting) for block in counting[instant])


def _counts(
    instant: str, by_instant: Mapping[str, Sequence[Block]], *, keeps_orphans: bool
) -> bool:
    """Whether the blocks of an instant count: a log compaction only as far as its sources do.

    Where some of what it replaces is not looked at, it would bring that back in; what is looked at
    says the same without it.
    """
    is_there = is_missing = False
    seen, waiting = {instant}, [instant]
    while waiting:
        blocks = by_instant.get(waiting.pop())
        if blocks is None:
            is_missing = True
            continue
        compacted = set(blocks[0].compacted_instants)
        is_there |= not compacted
        waiting += compacted - seen
        seen |= compacted
    return not is_missing or (keeps_orphans and not is_there)


def _in_force(by_instant: Mapping[str, Sequence[Block]]) -> list[str]:
    """The instants whose blocks count, oldest first.

    A log compaction stands where the newest plain write that it replaces stood: whatever lies
    between that place and its own came while it ran, and is newer than its contents. If no such
    write is left, it stands at its own place.
    """
    replaced_by = {
        compacted: instant
        for instant, blocks in by_instant.items()
        for compacted in blocks[0].compacted_instants
    }
    is_plain = {instant: not blocks[0].compacted_instants for instant, blocks in by_instant.items()}
    final = {instant: _final(instant, replaced_by) for instant in by_instant}
    standing_for_plain = {final[instant] for instant in by_instant if is_plain[instant]}
    newest_first = [
        final[instant]
        for instant in reversed(list(by_instant))
        if is_plain[instant] or final[instant] not in standing_for_plain
    ]
    return list(dict.fromkeys(newest_first))[::-1]


def _final(instant: str, replaced_by: Mapping[str, str]) -> str:
    """The end of a chain of log compactions; a circle, which no writer makes, ends somewhere."""
    seen = [instant]
    while (following := replaced_by.get(seen[-1])) is not None and following not in seen:
        seen.append(following)
    return seen[-1]


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
