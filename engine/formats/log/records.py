"""Data blocks: their records as Arrow tables, decoded no further than the wanted columns."""

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.avro.decode import decode_records, split_length_prefixed
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.kernel.errors import Defect

AVRO_BLOCK_VERSION = 3
_HEAD = struct.Struct(">ii")


def records(block: Block, columns: Sequence[str] | None = None) -> pa.Table:
    """The records of an Avro, Parquet or CDC block, in block order.

    Wanted columns that the block does not have are skipped. An HFile block has keys and values
    instead of columns: read its `range_source`.
    """
    match block.kind:
        case BlockKind.AVRO | BlockKind.CDC:
            return _avro_records(block, columns)
        case BlockKind.PARQUET:
            return _parquet_records(block, columns)
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


def _avro_records(block: Block, columns: Sequence[str] | None) -> pa.Table:
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
    return decode_records(encoded, starts, ends, schema, block.path, known, origin=origin)


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
