"""Writing log blocks: what Java reads as its own."""

import base64
import binascii
import io
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import (
    LOG_FORMAT_VERSION,
    MAGIC,
    ROLLBACK_COMMAND,
    BlockKind,
    Header,
)
from lakewarden.engine.formats.log.deletes import DELETE_BLOCK_VERSION, Deletes, encode_deletes
from lakewarden.engine.formats.log.reader import AVRO_BLOCK_VERSION
from lakewarden.engine.kernel.errors import corrupt

_INT64_MAX = (1 << 63) - 1


def decode_positions(text: str, count: int, path: str) -> np.ndarray:
    """The positions in ascending order, as int64; there must be `count` of them.

    They are counted before they are expanded, since a bitmap of a few bytes can stand for billions.
    """
    bitmap = _parse(text, path)
    if len(bitmap) != count:
        raise corrupt(path, None, f"There are {len(bitmap)} positions of {count} records.")
    if count and bitmap.max() > _INT64_MAX:
        raise corrupt(path, None, "A record position is negative.")
    return np.array(bitmap.to_array(), dtype=np.int64)


def _parse(text: str, path: str) -> BitMap64:
    try:
        payload = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise corrupt(path, None, "The record positions are not Base64 text.") from None
    try:
        bitmap = BitMap64.deserialize(payload)
    except (ValueError, IndexError) as error:
        raise corrupt(path, None, f"The record positions are no roaring bitmap: {error}.") from None
    # The library ignores what follows a bitmap.
    if len(bitmap.serialize()) != len(payload):
        raise corrupt(path, None, "The record positions have bytes behind their end.")
    return bitmap


def encode_positions(positions: np.ndarray) -> str:
    """The header text for positions, which must be ascending, unique and not negative."""
    ordered = np.ascontiguousarray(positions, dtype=np.int64)
    assert not len(ordered) or (ordered[0] >= 0 and bool(np.all(np.diff(ordered) > 0)))
    # An array of machine words is taken at once; numpy's are converted one by one.
    bitmap = BitMap64(array("Q", ordered.tobytes()))
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode("ascii")


# Java's hoodie.logfile.data.block.max.size.
BLOCK_BYTES_MAX = 256 << 20
PARQUET_CODEC = "snappy"
# Rows of so many bytes become blocks together: encoding and framing hold their bytes thrice.
_ROWS_BYTES_MAX = 32 << 20

_INT = struct.Struct(">i")
_TWO_INTS = struct.Struct(">ii")
_LONG = struct.Struct(">q")

Content: TypeAlias = bytes | memoryview | pa.Buffer


@dataclass(frozen=True, slots=True)
class Positions:
    """Rows of the base file of an instant: for each record in turn, in ascending order."""

    base_instant: str
    rows: np.ndarray

    def between(self, start: int, end: int) -> "Positions":
        return Positions(self.base_instant, self.rows[start:end])


@dataclass(frozen=True, slots=True)
class BlockOrigin:
    """What all blocks of one write say of themselves."""

    # Archived instants are of no write.
    instant: str | None
    schema_text: str | None = None
    # Log compaction: the instants whose blocks these replace, oldest first.
    compacted_instants: tuple[str, ...] = ()
    is_partial: bool = False

    def headers(self, positions: Positions | None = None) -> dict[Header, str]:
        headers = {} if self.instant is None else {Header.INSTANT_TIME: self.instant}
        if self.schema_text is not None:
            headers[Header.SCHEMA] = self.schema_text
        if self.compacted_instants:
            headers[Header.COMPACTED_BLOCK_TIMES] = ",".join(self.compacted_instants)
        if self.is_partial:
            headers[Header.IS_PARTIAL] = "true"
        if positions is not None:
            headers[Header.RECORD_POSITIONS] = encode_positions(positions.rows)
            headers[Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = positions.base_instant
        return headers


def encode_block(kind: BlockKind, headers: Mapping[Header, str], *content: Content) -> bytes:
    """One block; its content may come in pieces."""
    size = sum(memoryview(piece).nbytes for piece in content)
    inside = [
        _TWO_INTS.pack(LOG_FORMAT_VERSION, kind),
        _encode_headers(headers),
        _LONG.pack(size),
        *content,
        _encode_headers({}),
    ]
    length = sum(memoryview(piece).nbytes for piece in inside) + _LONG.size
    # The reverse pointer counts the magic, too.
    return b"".join([MAGIC, _LONG.pack(length), *inside, _LONG.pack(length + len(MAGIC))])


def avro_blocks(
    table: pa.Table,
    origin: BlockOrigin,
    *,
    positions: Positions | None = None,
    bytes_max: int = BLOCK_BYTES_MAX,
    kind: BlockKind = BlockKind.AVRO,
) -> Iterator[bytes]:
    """The records of a table as Avro data blocks, a new one whenever one is full.

    The schema of the origin is the one the records are written by.
    """
    assert origin.schema_text is not None
    schema = parse_schema(origin.schema_text, "the schema of a log block")
    step = max(len(table) * _ROWS_BYTES_MAX // max(table.nbytes, 1), 1)
    for first in range(0, len(table), step):
        encoded = encode_records(table.slice(first, step), schema, length_prefixed=True)
        content = memoryview(encoded.content)
        for start, end in _cuts(encoded.offsets, bytes_max):
            own = positions.between(first + start, first + end) if positions else None
            head = _TWO_INTS.pack(AVRO_BLOCK_VERSION, end - start)
            records = content[int(encoded.offsets[start]) : int(encoded.offsets[end])]
            yield encode_block(kind, origin.headers(own), head, records)


def record_block(records: Sequence[bytes], origin: BlockOrigin) -> bytes:
    """Records that are encoded already, as one Avro data block."""
    content = [_TWO_INTS.pack(AVRO_BLOCK_VERSION, len(records))]
    for record in records:
        content += [_INT.pack(len(record)), record]
    return encode_block(BlockKind.AVRO, origin.headers(), *content)


def change_blocks(table: pa.Table, origin: BlockOrigin, *, bytes_max: int) -> Iterator[bytes]:
    """Changes as blocks of change data: one in any case, so that readers see that none is lost."""
    if not len(table):
        yield encode_block(BlockKind.CDC, origin.headers(), _TWO_INTS.pack(AVRO_BLOCK_VERSION, 0))
    yield from avro_blocks(table, origin, bytes_max=bytes_max, kind=BlockKind.CDC)


def parquet_block(
    table: pa.Table, origin: BlockOrigin, *, positions: Positions | None = None
) -> bytes:
    """The records of a table as one Parquet data block."""
    out = io.BytesIO()
    pq.write_table(table, out, compression=PARQUET_CODEC, store_schema=False)
    return encode_block(BlockKind.PARQUET, origin.headers(positions), out.getbuffer())


def hfile_block(hfile: Content, origin: BlockOrigin) -> bytes:
    """A whole HFile as a block, as the metadata table's logs hold them."""
    return encode_block(BlockKind.HFILE, origin.headers(), hfile)


def delete_block(
    deletes: Deletes, origin: BlockOrigin, *, positions: Positions | None = None
) -> bytes:
    """Deleted keys as a block; those without a real ordering value are unconditional."""
    encoded = encode_deletes(deletes)
    head = _TWO_INTS.pack(DELETE_BLOCK_VERSION, memoryview(encoded).nbytes)
    return encode_block(BlockKind.DELETE, origin.headers(positions), head, encoded)


def rollback_block(origin: BlockOrigin, target: str) -> bytes:
    """A command to forget an instant's earlier blocks; only version 6 writes it."""
    headers = origin.headers() | {
        Header.TARGET_INSTANT_TIME: target,
        Header.COMMAND_BLOCK_TYPE: ROLLBACK_COMMAND,
    }
    return encode_block(BlockKind.COMMAND, headers)


def _encode_headers(headers: Mapping[Header, str]) -> bytes:
    texts = [(key, text.encode()) for key, text in headers.items()]
    entries = [_TWO_INTS.pack(key, len(text)) + text for key, text in texts]
    return _INT.pack(len(entries)) + b"".join(entries)


def _cuts(offsets: np.ndarray, bytes_max: int) -> Iterator[tuple[int, int]]:
    """Ranges of records that fill a block each; one at least, however large it is."""
    count, start = len(offsets) - 1, 0
    while start < count:
        limit = int(offsets[start]) + bytes_max
        end = max(int(np.searchsorted(offsets, limit, side="right")) - 1, start + 1)
        yield start, min(end, count)
        start = end
