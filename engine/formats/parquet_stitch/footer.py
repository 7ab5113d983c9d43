"""Parquet footers as they are written: which bytes of a file belong to which column and row group.

What a reader like Arrow shows of a footer can't be written again; this can.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.parquet_stitch.compact import MalformedThrift, Struct, read_struct
from lakewarden.engine.formats.range_source import RangeSource
from lakewarden.engine.kernel.errors import corrupt

MAGIC = b"PAR1"
_LENGTH_BYTES = 4
TAIL_BYTES = _LENGTH_BYTES + len(MAGIC)
# Most footers come with the first read: a bloom filter of 120,000 keys takes 860 KB.
_READ_AT_ONCE = 1 << 20


class InFile:
    """The numbers of a file's fields."""

    SCHEMA, ROWS, ROW_GROUPS, KEY_VALUES, ENCRYPTION = 2, 3, 4, 5, 8


class InGroup:
    """The numbers of a row group's fields."""

    COLUMNS, UNPACKED_BYTES, ROWS, OFFSET, PACKED_BYTES, ORDINAL = 1, 2, 3, 5, 6, 7


class InColumn:
    """The numbers of the fields of a column chunk."""

    FILE, OFFSET, META, ENCRYPTION = 1, 2, 3, 8
    # Offsets and lengths of the offset index and the column index.
    INDEXES = (4, 5, 6, 7)


class InMeta:
    """The numbers of the fields of a column chunk's metadata."""

    TYPE, ENCODINGS, PATH, CODEC, VALUES, UNPACKED_BYTES, PACKED_BYTES = 1, 2, 3, 4, 5, 6, 7
    DATA_OFFSET, INDEX_OFFSET, DICTIONARY_OFFSET, STATISTICS, ENCODING_STATS = 9, 10, 11, 12, 13
    # Parquet's own bloom filters, of which Hudi makes no use.
    BLOOM_FILTER = (14, 15)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group: its pages lie together."""

    path: tuple[bytes, ...]
    start: int
    length: int
    unpacked_bytes: int
    raw: Struct = field(repr=False)

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows whose columns lie beside each other in a file."""

    rows: int
    chunks: tuple[Chunk, ...]
    raw: Struct = field(repr=False)

    @property
    def size_bytes(self) -> int:
        return sum(chunk.length for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says, without its texts by key, which may be large."""

    rows: int
    schema: tuple[Struct, ...]
    groups: tuple[RowGroup, ...]
    is_encrypted: bool
    raw: Struct = field(repr=False)


@dataclass(frozen=True, slots=True)
class FooterAndTexts:
    """A footer, and the texts that it keeps by key."""

    footer: Footer
    texts: Mapping[bytes, bytes] = field(repr=False)


def read_footer(source: RangeSource, path: str) -> FooterAndTexts:
    """The footer of a file; raises `CorruptTable` for anything that is none."""
    size = source.size
    if size < TAIL_BYTES + len(MAGIC):
        raise corrupt(path, None, f"{size} bytes are too few for a Parquet file.")
    tail_at = max(size - _READ_AT_ONCE, 0)
    tail = bytes(source.read(tail_at, size - tail_at))
    if len(tail) != size - tail_at or not tail.endswith(MAGIC):
        raise corrupt(path, size - len(MAGIC), "It does not end as a Parquet file does.")
    length = int.from_bytes(tail[-TAIL_BYTES : -len(MAGIC)], "little")
    start = size - TAIL_BYTES - length
    if start < len(MAGIC):
        raise corrupt(path, size - TAIL_BYTES, f"A footer of {length} bytes does not fit.")
    if start >= tail_at:
        content = tail[start - tail_at : -TAIL_BYTES]
    else:
        content = bytes(source.read(start, length))
    return parse_footer(content, start, path)


def parse_footer(content: bytes, start: int, path: str) -> FooterAndTexts:
    """A footer that begins at a place of its file; all of its chunks must lie before that."""
    try:
        raw = read_struct(content)
        texts = {
            pair.octets(1) or b"": pair.octets(2) or b"" for pair in raw.structs(InFile.KEY_VALUES)
        }
        groups = tuple(_row_group(one, start) for one in raw.structs(InFile.ROW_GROUPS))
        footer = Footer(
            rows=raw.required(InFile.ROWS),
            schema=raw.structs(InFile.SCHEMA),
            groups=groups,
            is_encrypted=InFile.ENCRYPTION in raw.fields,
            raw=raw.changed({InFile.KEY_VALUES: None, InFile.ROW_GROUPS: None}),
        )
        _check(footer)
    except MalformedThrift as error:
        offset = None if error.offset is None else start + error.offset
        raise corrupt(path, offset, f"Its footer is broken. {error.reason}") from None
    return FooterAndTexts(footer, texts)


def _check(footer: Footer) -> None:
    counted = sum(group.rows for group in footer.groups)
    if counted != footer.rows:
        raise MalformedThrift(
            f"It should have {footer.rows} rows, and its row groups have {counted}."
        )
    if not footer.schema:
        raise MalformedThrift("It has no schema.")
    if len({len(group.chunks) for group in footer.groups}) > 1:
        raise MalformedThrift("Its row groups differ in their columns.")


def _row_group(raw: Struct, end: int) -> RowGroup:
    chunks = tuple(_chunk(one, end) for one in raw.structs(InGroup.COLUMNS))
    rows = raw.required(InGroup.ROWS)
    raw.required(InGroup.UNPACKED_BYTES)
    return RowGroup(rows, chunks, raw.changed({InGroup.COLUMNS: None}))


def _chunk(raw: Struct, end: int) -> Chunk:
    meta = raw.struct(InColumn.META)
    if meta is None or InColumn.ENCRYPTION in raw.fields or InColumn.FILE in raw.fields:
        raise MalformedThrift("A column is encrypted, or in another file.")
    places = (InMeta.DATA_OFFSET, InMeta.INDEX_OFFSET, InMeta.DICTIONARY_OFFSET)
    # Some writers say 0 for a dictionary that is not there.
    offsets = [offset for place in places if (offset := meta.number(place))]
    length = meta.required(InMeta.PACKED_BYTES)
    start = min(offsets, default=0)
    if start < len(MAGIC) or start + length > end:
        raise MalformedThrift(f"A column of {length} bytes from {start} on is not within the file.")
    unpacked = meta.required(InMeta.UNPACKED_BYTES)
    return Chunk(meta.texts(InMeta.PATH), start, length, unpacked, raw)
