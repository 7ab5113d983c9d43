"""Constant columns: a column chunk in which every row has the same text, made without encoding.

A dictionary of one value, and runs that point to it: some dozens of bytes for any number of rows.
"""

from dataclasses import dataclass

from lakewarden.engine.formats.parquet_stitch.compact import (
    Struct,
    ThriftField,
    ThriftKind,
    flag,
    i32,
    i64,
    items,
    octets,
    structure,
    varint,
    written,
)
from lakewarden.engine.formats.parquet_stitch.footer import InColumn, InMeta

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
