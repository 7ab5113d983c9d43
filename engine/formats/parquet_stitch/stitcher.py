"""Stitching: row groups of several files become one file, as bytes, without decoding a page.

Columns that hold the same text in every row of the new file are replaced on the way. Page indexes
and Parquet's bloom filters stay behind: they lie elsewhere in the files, and readers do without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakewarden.engine.formats.parquet_stitch.compact import (
    Struct,
    ThriftField,
    ThriftKind,
    i16,
    i64,
    items,
    octets,
    structure,
    written,
)
from lakewarden.engine.formats.parquet_stitch.constant_column import BYTE_ARRAY, constant_chunk
from lakewarden.engine.formats.parquet_stitch.footer import (
    MAGIC,
    Chunk,
    Footer,
    InColumn,
    InFile,
    InGroup,
    InMeta,
    RowGroup,
)
from lakewarden.engine.kernel.errors import InvalidRequest

_ORDINAL_MAX = (1 << 15) - 1
_FOOTER_BYTES_MAX = (1 << 31) - 1
_OPTIONAL = 1


class _InElement:
    """The numbers of the fields of a schema's element."""

    TYPE, REPETITION, NAME, CHILDREN = 1, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes to be copied from the file that a row group comes from."""

    start: int
    length: int


Piece: TypeAlias = Range | bytes


def obstacle(footers: Sequence[Footer], constants: Mapping[str, str]) -> str | None:
    """Why files can't be stitched, in a word; None when nothing stands in the way."""
    first = footers[0]
    if any(footer.is_encrypted for footer in footers):
        return "encrypted"
    if any(not same_columns(first, footer) for footer in footers):
        return "other columns"
    found = {name: _leaf(first, name.encode()) for name in constants}
    if any(leaf is None for leaf in found.values()):
        return "no column to replace"
    return None


def same_columns(one: Footer, other: Footer) -> bool:
    """Whether two files describe their columns in the same words; the name of the whole is free."""
    return one.schema[1:] == other.schema[1:]


def _leaf(footer: Footer, name: bytes) -> Struct | None:
    """The element of a text column at the top of the schema."""
    at = 1
    for _ in range(footer.schema[0].number(_InElement.CHILDREN) or 0):
        if at >= len(footer.schema):
            return None
        element = footer.schema[at]
        if element.octets(_InElement.NAME) == name:
            is_flat = (element.number(_InElement.REPETITION) or 0) <= _OPTIONAL
            is_text = element.number(_InElement.TYPE) == BYTE_ARRAY
            return element if is_flat and is_text else None
        at = _behind(footer.schema, at)
    return None


def _behind(schema: tuple[Struct, ...], at: int) -> int:
    """The place behind an element and all that is below it."""
    waiting = 1
    while waiting and at < len(schema):
        waiting += (schema[at].number(_InElement.CHILDREN) or 0) - 1
        at += 1
    return at


class Stitcher:
    """A new file on its way: what to copy in which order, and its footer in the end."""

    HEAD = MAGIC

    def __init__(self, first: Footer, constants: Mapping[str, str]) -> None:
        self._first = first
        self._constants = {name.encode(): text.encode() for name, text in constants.items()}
        self._position = len(MAGIC)
        self._groups: list[Struct] = []
        self._rows = 0

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def size_bytes(self) -> int:
        """The size of what was handed out so far."""
        return self._position

    def add(self, group: RowGroup) -> tuple[Piece, ...]:
        """The bytes of a row group, which are to be appended before the next call."""
        start = self._position
        pieces: list[Piece] = []
        columns: list[Struct] = []
        unpacked = group.raw.required(InGroup.UNPACKED_BYTES)
        for chunk in group.chunks:
            text = self._constants.get(chunk.path[0]) if len(chunk.path) == 1 else None
            if text is None:
                columns.append(_moved(chunk, self._position - chunk.start))
                _append(pieces, Range(chunk.start, chunk.length))
                self._position += chunk.length
            else:
                made = constant_chunk(
                    chunk.path, text, group.rows, is_optional=self._is_optional(chunk.path[0])
                )
                columns.append(made.column(self._position))
                pieces.append(made.content)
                self._position += len(made.content)
                unpacked += len(made.content) - chunk.unpacked_bytes
        self._groups.append(self._group(group, columns, start, unpacked))
        self._rows += group.rows
        return tuple(pieces)

    def finish(self, texts: Mapping[str, str]) -> bytes:
        """The end of the file: its footer with some texts by key."""
        pairs = [
            Struct({1: octets(key.encode()), 2: octets(text.encode())})
            for key, text in texts.items()
        ]
        raw = self._first.raw.changed(
            {
                InFile.ROWS: i64(self._rows),
                InFile.ROW_GROUPS: items(ThriftKind.STRUCT, self._groups),
                InFile.KEY_VALUES: items(ThriftKind.STRUCT, pairs),
            }
        )
        content = written(raw)
        if len(content) > _FOOTER_BYTES_MAX:
            raise InvalidRequest(
                "footer_too_large",
                what=f"The footer of {len(self._groups)} row groups has {len(content)} bytes.",
                why="Its length must fit in 32 bits.",
                now="Make smaller files.",
            )
        return content + len(content).to_bytes(4, "little") + MAGIC

    def _group(self, group: RowGroup, columns: list[Struct], start: int, unpacked: int) -> Struct:
        ordinal = len(self._groups)
        return group.raw.changed(
            {
                InGroup.COLUMNS: items(ThriftKind.STRUCT, columns),
                InGroup.UNPACKED_BYTES: i64(max(unpacked, 0)),
                InGroup.OFFSET: i64(start),
                InGroup.PACKED_BYTES: i64(self._position - start),
                InGroup.ORDINAL: i16(ordinal) if ordinal <= _ORDINAL_MAX else None,
            }
        )

    def _is_optional(self, name: bytes) -> bool:
        leaf = _leaf(self._first, name)
        return leaf is not None and leaf.number(_InElement.REPETITION) == _OPTIONAL


def _append(pieces: list[Piece], piece: Range) -> None:
    """Add a range, to the last one if it goes on there."""
    last = pieces[-1] if pieces else None
    if isinstance(last, Range) and last.start + last.length == piece.start:
        pieces[-1] = Range(last.start, last.length + piece.length)
    else:
        pieces.append(piece)


def _moved(chunk: Chunk, distance: int) -> Struct:
    """The column chunk of a footer, so many bytes further on."""
    meta = chunk.raw.struct(InColumn.META)
    assert meta is not None
    changes: dict[int, ThriftField | None] = dict.fromkeys(InMeta.BLOOM_FILTER)
    for place in (InMeta.DATA_OFFSET, InMeta.INDEX_OFFSET, InMeta.DICTIONARY_OFFSET):
        offset = meta.number(place)
        changes[place] = i64(offset + distance) if offset else None
    column: dict[int, ThriftField | None] = dict.fromkeys(InColumn.INDEXES)
    column[InColumn.OFFSET] = i64(chunk.start + distance)
    column[InColumn.META] = structure(meta.changed(changes))
    return chunk.raw.changed(column)
