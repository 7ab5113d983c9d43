"""Many Avro records at once, to Arrow columns: field by field, all records in lock-step."""

import struct
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_field
from lakewarden.engine.formats.avro.types import Field, RecordType, weight
from lakewarden.engine.formats.avro.values import read_value
from lakewarden.engine.formats.avro.walk import skip
from lakewarden.engine.formats.avro.window import MAXIMUM_WINDOW, Cursor, Integers, Window
from lakewarden.engine.kernel.errors import Defect, InvalidRequest, corrupt

Content: TypeAlias = bytes | memoryview | pa.Buffer

# A window's vectors should stay in the processor's cache, and a column's values are never many
# more than this even where a few bytes stand for many nulls.
WINDOW_ROWS = 1 << 15
WINDOW_BYTES = 1 << 23
WINDOW_VALUES = 1 << 23

_LENGTH = struct.Struct(">i")


def split_length_prefixed(
    content: Content, count: int, path: str, *, origin: int = 0
) -> tuple[Integers, Integers]:
    """Where each of `count` records begins and ends, when each has its length in front.

    The records must fill the content. `origin` is where the content begins in its file.
    """
    octets = memoryview(content)
    if not 0 <= count <= octets.nbytes // _LENGTH.size:
        raise corrupt(path, origin, f"{octets.nbytes} bytes cannot hold {count} records.")
    length_at, end = _LENGTH.unpack_from, 0
    try:
        found = [end := end + length_at(octets, end)[0] + _LENGTH.size for _ in range(count)]
    except struct.error as error:
        raise corrupt(path, origin + end, "A record's length is cut off.") from error
    ends = np.array([0, *found], np.int64)
    starts, ends = ends[:-1] + _LENGTH.size, ends[1:]
    wrong = (ends < starts) | (ends > octets.nbytes)
    if wrong.any():
        at = int(starts[wrong.argmax()]) - _LENGTH.size
        raise corrupt(path, origin + at, "A record's length does not fit in its block.")
    if end != octets.nbytes:
        raise corrupt(path, origin + end, f"Bytes follow the last of {count} records.")
    return starts, ends


def decode_records(
    content: Content,
    starts: Integers,
    ends: Integers,
    schema: RecordType,
    path: str,
    columns: Sequence[str] | None = None,
    *,
    origin: int = 0,
) -> pa.Table:
    """The records between `starts` and `ends`, in ascending order, as a table.

    `columns` chooses and orders the columns; the others are checked but not read. `origin` is where
    the content begins in its file.
    """
    octets = np.frombuffer(content, np.uint8)
    wanted = _wanted(schema, columns)
    shown = pa.schema([arrow_field(field.name, field.type) for field in wanted])
    batches = []
    for first, last in _windows(octets.size, starts, ends, schema, path):
        start = int(starts[first])
        window = Window(octets, start, int(ends[last - 1]), path, origin=origin)
        cursor = Cursor(starts[first:last] - start, ends[first:last] - start)
        found = _read_columns(window, schema, cursor, {field.name for field in wanted})
        batches.append(_batch([found[field.name] for field in wanted], shown, last - first))
    return pa.Table.from_batches(batches, shown)


def _wanted(schema: RecordType, columns: Sequence[str] | None) -> tuple[Field, ...]:
    if columns is None:
        return schema.fields
    known = {field.name: field for field in schema.fields}
    missing = [name for name in columns if name not in known]
    if missing:
        raise InvalidRequest(
            "unknown_column",
            what=f"The record {schema.name} has no column {missing[0]!r}.",
            why=f"It has {', '.join(known)}.",
            now="Ask for columns that exist.",
            column=missing[0],
        )
    return tuple(known[name] for name in columns)


def _windows(
    size: int, starts: Integers, ends: Integers, schema: RecordType, path: str
) -> Iterator[tuple[int, int]]:
    """Ranges of records that are decoded together."""
    _check_bounds(size, starts, ends, path)
    most_rows = max(1, min(WINDOW_ROWS, WINDOW_VALUES // weight(schema)))
    first = 0
    while first < starts.size:
        last = int(np.searchsorted(ends, starts[first] + WINDOW_BYTES, side="right"))
        last = max(first + 1, min(last, first + most_rows))
        yield first, last
        first = last


def _check_bounds(size: int, starts: Integers, ends: Integers, path: str) -> None:
    if starts.size != ends.size or (starts[1:] < ends[:-1]).any():
        raise Defect("unordered_records", what="Records are not in ascending order.", path=path)
    wrong = (starts < 0) | (ends < starts) | (ends > size) | (ends - starts > MAXIMUM_WINDOW)
    if wrong.any():
        at = int(starts[wrong.argmax()])
        raise corrupt(path, at, "A record reaches out of its file, or is larger than 2 GiB.")


def _read_columns(
    window: Window, schema: RecordType, cursor: Cursor, wanted: AbstractSet[str]
) -> dict[str, pa.Array]:
    found = {}
    for field in schema.fields:
        if field.name in wanted:
            found[field.name], cursor = read_value(window, field.type, cursor)
        else:
            cursor = skip(window, field.type, cursor)
    window.refuse(cursor.positions != cursor.ends, cursor, "A record is longer than its fields.")
    return found


def _batch(columns: list[pa.Array], shown: pa.Schema, rows: int) -> pa.RecordBatch:
    # A batch made from columns alone would forget how many rows it has if there are no columns.
    struct = pa.Array.from_buffers(pa.struct(list(shown)), rows, [None], children=columns)
    return pa.RecordBatch.from_struct_array(struct)
