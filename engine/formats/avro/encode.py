"""Arrow columns to Avro records: the bytes of each column for all rows, then joined row by row."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.pieces import Cells, joined, offsets_of, sizes_of
from lakewarden.engine.formats.avro.types import RecordType, weight
from lakewarden.engine.formats.avro.window import Integers
from lakewarden.engine.formats.avro.write_values import order_of, write_fields
from lakewarden.engine.kernel.errors import InvalidRequest

# What stands in memory beside the result is bounded by these.
CHUNK_ROWS = 1 << 15
CHUNK_VALUES = 1 << 23
CHUNK_BYTES = 1 << 28
MAXIMUM_RECORD = 2**31 - 1


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Records one after the other; each begins at its offset, the last offset is the end."""

    content: pa.Buffer
    offsets: Integers


def encode_records(table: pa.Table, schema: RecordType, *, length_prefixed: bool) -> EncodedRecords:
    """The rows of a table as Avro records, perhaps each behind its length in four bytes.

    The table's columns are those of the schema, in any order. Other widths and layouts of a type
    will do; a value without a place in the schema is refused.
    """
    table = table.select(order_of(table.column_names, schema, ""))
    ends = [np.zeros(1, np.int64)]
    contents = []
    step = _chunk_rows(table, schema)
    for first in range(0, table.num_rows, step):
        rows = min(step, table.num_rows - first)
        columns = [_whole(column.slice(first, rows)) for column in table.columns]
        one = _encoded(columns, rows, schema, length_prefixed=length_prefixed)
        offsets = offsets_of(one)
        contents.append(one.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]))
        ends.append(offsets[1:] - offsets[0] + ends[-1][-1])
    content = contents[0] if len(contents) == 1 else pa.py_buffer(b"".join(contents))
    return EncodedRecords(content, np.concatenate(ends))


def _chunk_rows(table: pa.Table, schema: RecordType) -> int:
    by_bytes: int = table.num_rows * CHUNK_BYTES // max(table.nbytes, 1)
    return max(1, min(CHUNK_ROWS, CHUNK_VALUES // weight(schema), by_bytes))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    # Combining copies, even a single chunk.
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _encoded(
    columns: list[pa.Array], rows: int, schema: RecordType, *, length_prefixed: bool
) -> pa.Array:
    pieces = write_fields(columns, schema, "")
    sizes = sizes_of(pieces, rows)
    if sizes.max(initial=0) > MAXIMUM_RECORD:
        raise InvalidRequest(
            "record_too_large",
            what="A record is larger than 2 GiB.",
            why="Its length must fit in four bytes.",
            now="Store the large value elsewhere.",
        )
    if length_prefixed:
        lengths = sizes.astype(">i4").view(np.uint8).reshape(rows, 4)
        pieces = [Cells(lengths, np.full(rows, 4)), *pieces]
    return joined(pieces, rows)
