"""Stitching: row groups of several files become one file, as bytes, without decoding a page.

Columns that hold the same text in every row of the new file are replaced on the way. Page indexes
and Parquet's bloom filters stay behind: they lie elsewhere in the files, and readers do without.

United key footers: what a stitched file's footer says of its keys, from those of its parts.

Bloom filters are joined row by row, as far as rows have room for each other's keys, and up to as
many rows as a filter may have; further ones are laid over those. No key is hashed again.

Constant columns: a column chunk in which every row has the same text, made without encoding.

A dictionary of one value, and runs that point to it: some dozens of bytes for any number of rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lakewarden.engine.formats.bloom import DEFAULT_ENTRIES_MAX, BloomFilter
from lakewarden.engine.formats.parquet_footer import KeyFooter
from lakewarden.engine.formats.parquet_stitch.compact import (
    Struct,
    ThriftField,
    ThriftKind,
    flag,
    i16,
    i32,
    i64,
    items,
    octets,
    structure,
    varint,
    written,
)
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


class KeyUnion:
    """Gathers the key footers of the parts of one file."""

    def __init__(self, entries_max: int = DEFAULT_ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._bloom: _Rows | None = None
        self._bounds: list[str] = []
        self._is_known = True

    def add(self, keys: KeyFooter, *, rows: int, path: str) -> None:
        """Take in the footer of a file of so many rows."""
        bloom = keys.bloom_filter(path)
        if bloom is None or (rows and (keys.min_key is None or keys.max_key is None)):
            self._is_known = False
            return
        self._bounds += [key for key in (keys.min_key, keys.max_key) if key is not None]
        if self._bloom is None:
            self._bloom = _Rows(bloom, self._entries_max)
        elif not self._bloom.took(bloom):
            self._is_known = False

    def footer(self) -> KeyFooter | None:
        """The footer of all together; None where the keys themselves have to tell."""
        if not self._is_known or self._bloom is None:
            return None
        bounds = sorted(self._bounds, key=_utf16)
        low, high = (bounds[0], bounds[-1]) if bounds else (None, None)
        bloom = self._bloom.filter()
        return KeyFooter(bloom.text(), bloom.type_code, low, high)


class _Rows:
    """The rows of a filter in the making, and how many keys each has."""

    def __init__(self, first: BloomFilter, entries_max: int) -> None:
        self._shape = first
        self._rows: list[npt.NDArray[np.uint8]] = []
        self._counts: list[int] = []
        by_entries = -(-entries_max // first.row_entries) if first.row_entries else 1
        self._rows_max = max(by_entries, len(first.rows), 1)
        self.took(first)

    def took(self, other: BloomFilter) -> bool:
        """Take in a filter; False for one of another form."""
        mine = self._shape
        form = (other.type_code, other.hash_count, other.bit_count, other.row_entries)
        if form != (mine.type_code, mine.hash_count, mine.bit_count, mine.row_entries):
            return False
        full = [other.row_entries] * (len(other.rows) - 1)
        for row, count in zip(other.rows, [*full, other.last_row_entries], strict=True):
            self._add(row, count)
        return True

    def filter(self) -> BloomFilter:
        """The filter; a new key would go to its last row."""
        total, entries = sum(self._counts), self._shape.row_entries
        last = max(total - (len(self._rows) - 1) * entries, 0)
        return replace(self._shape, rows=np.stack(self._rows), last_row_entries=last)

    def _add(self, row: npt.NDArray[np.uint8], count: int) -> None:
        for place, had in enumerate(self._counts):
            if had + count <= self._shape.row_entries:
                self._lay_over(place, row, count)
                return
        if len(self._rows) < self._rows_max:
            self._rows.append(row.copy())
            self._counts.append(count)
        else:
            self._lay_over(int(np.argmin(self._counts)), row, count)

    def _lay_over(self, place: int, row: npt.NDArray[np.uint8], count: int) -> None:
        self._rows[place] |= row
        self._counts[place] += count


def _utf16(text: str) -> bytes:
    """Java's order of texts."""
    return text.encode("utf-16-be", "surrogatepass")


# Readers hold a page at a time.
PAGE_ROWS_MAX = 1 << 20
BYTE_ARRAY = 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_UNCOMPRESSED = 0
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ConstantChunk:
    """The bytes of a column chunk, and what a footer says of it once it has its place."""

    content: bytes
    path: tuple[bytes, ...]
    text: bytes
    rows: int
    dictionary_bytes: int
    data_pages: int

    def column(self, start: int) -> Struct:
        """The column chunk of a footer."""
        size = len(self.content)
        meta = Struct(
            {
                InMeta.TYPE: i32(BYTE_ARRAY),
                InMeta.ENCODINGS: items(ThriftKind.I32, (_PLAIN, _RLE, _RLE_DICTIONARY)),
                InMeta.PATH: items(ThriftKind.BINARY, self.path),
                InMeta.CODEC: i32(_UNCOMPRESSED),
                InMeta.VALUES: i64(self.rows),
                InMeta.UNPACKED_BYTES: i64(size),
                InMeta.PACKED_BYTES: i64(size),
                InMeta.DATA_OFFSET: i64(start + self.dictionary_bytes),
                InMeta.DICTIONARY_OFFSET: i64(start),
                InMeta.STATISTICS: structure(self._statistics()),
                InMeta.ENCODING_STATS: items(ThriftKind.STRUCT, self._encodings()),
            }
        )
        return Struct({InColumn.OFFSET: i64(start), InColumn.META: structure(meta)})

    def _statistics(self) -> Struct:
        text = octets(self.text)
        exact = flag(value=True)
        return Struct({3: i64(0), 5: text, 6: text, 7: exact, 8: exact})

    def _encodings(self) -> tuple[Struct, Struct]:
        return (
            _numbers(_DICTIONARY_PAGE, _PLAIN, 1),
            _numbers(_DATA_PAGE, _RLE_DICTIONARY, self.data_pages),
        )


def constant_chunk(
    path: tuple[bytes, ...], text: bytes, rows: int, *, is_optional: bool
) -> ConstantChunk:
    """A column in which all rows have one text; where it may be null, no row is."""
    dictionary = len(text).to_bytes(_LENGTH_BYTES, "little") + text
    dictionary_page = _page(_DICTIONARY_PAGE, 7, dictionary, Struct({1: i32(1), 2: i32(_PLAIN)}))
    pages = []
    for first in range(0, rows, PAGE_ROWS_MAX):
        count = min(rows - first, PAGE_ROWS_MAX)
        header = Struct({1: i32(count), 2: i32(_RLE_DICTIONARY), 3: i32(_RLE), 4: i32(_RLE)})
        levels = _sized(_run(count, 1)) if is_optional else b""
        # Behind the width of one bit comes the one run of the first, and only, value.
        pages.append(_page(_DATA_PAGE, 5, levels + b"\x01" + _run(count, 0), header))
    return ConstantChunk(
        dictionary_page + b"".join(pages), path, text, rows, len(dictionary_page), len(pages)
    )


def _page(kind: int, place: int, content: bytes, header: Struct) -> bytes:
    sizes: dict[int, ThriftField] = {1: i32(kind), 2: i32(len(content)), 3: i32(len(content))}
    return written(Struct({**sizes, place: structure(header)})) + content


def _run(count: int, value: int) -> bytes:
    return varint(count << 1) + bytes([value])


def _sized(content: bytes) -> bytes:
    return len(content).to_bytes(_LENGTH_BYTES, "little") + content


def _numbers(*values: int) -> Struct:
    return Struct({place: i32(value) for place, value in enumerate(values, start=1)})


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
