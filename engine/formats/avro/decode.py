"""Many Avro records at once, to Arrow columns: field by field, all records in lock-step."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_field
from lakewarden.engine.formats.avro.read_values import read_value
from lakewarden.engine.formats.avro.types import Field, RecordType, weight
from lakewarden.engine.formats.avro.walk import skip
from lakewarden.engine.formats.avro.window import (
    MAXIMUM_WINDOW,
    Crowded,
    Cursor,
    Integers,
    Octets,
    RecordWindow,
)
from lakewarden.engine.kernel.errors import Defect, InvalidRequest, corrupt

Content: TypeAlias = bytes | memoryview | pa.Buffer

# A window's vectors should stay in the processor's cache, and a column's values are never many
# more than this even where a few bytes stand for many nulls.
WINDOW_ROWS = 1 << 15
WINDOW_BYTES = 1 << 23
WINDOW_VALUES = 1 << 24

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
        at = min(max(end, 0), octets.nbytes)
        raise corrupt(path, origin + at, "A record's length is cut off.") from error
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
    wanted = _wanted(schema, columns)
    shown = pa.schema([arrow_field(field.name, field.type) for field in wanted])
    decoder = _Decoder(np.frombuffer(content, np.uint8), schema, shown, path, origin)
    decoder.check(starts, ends)
    batches: list[pa.RecordBatch] = []
    for rows in _windows(starts, ends, schema):
        batches += decoder.batches(starts[rows], ends[rows])
    return pa.Table.from_batches(batches, shown)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """What stays the same from one window of records to the next."""

    octets: Octets
    schema: RecordType
    shown: pa.Schema
    path: str
    origin: int

    def check(self, starts: Integers, ends: Integers) -> None:
        """Whether records may begin and end there."""
        if starts.size != ends.size or (starts[1:] < ends[:-1]).any():
            raise Defect(
                "unordered_records",
                what="Records are not in ascending order.",
                why="A reader asks for them in the order of their offsets.",
                path=self.path,
            )
        outside = (starts < 0) | (ends < starts) | (ends > self.octets.size)
        wrong = outside | (ends - starts > MAXIMUM_WINDOW)
        if wrong.any():
            at = self.origin + int(starts[wrong.argmax()])
            raise corrupt(self.path, at, "A record leaves its file, or is larger than 2 GiB.")

    def batches(self, starts: Integers, ends: Integers) -> list[pa.RecordBatch]:
        """The records in one batch; in more if they unfold to too many values at once."""
        start, rows = int(starts[0]), starts.size
        window = RecordWindow(self.octets, start, int(ends[-1]), self.path, origin=self.origin)
        try:
            return [self._batch(window, Cursor(starts - start, ends - start))]
        except Crowded as error:
            if rows == 1:
                raise window.corrupt(0, f"The record would unfold to {error} values.") from error
        half = rows // 2
        return self.batches(starts[:half], ends[:half]) + self.batches(starts[half:], ends[half:])

    def _batch(self, window: RecordWindow, cursor: Cursor) -> pa.RecordBatch:
        found, rows = {}, len(cursor)
        wanted = set(self.shown.names)
        for field in self.schema.fields:
            if field.name in wanted:
                found[field.name], cursor = read_value(window, field.type, cursor)
            else:
                cursor = skip(window, field.type, cursor)
        longer = cursor.positions != cursor.ends
        window.refuse(longer, cursor, "A record is longer than its fields.")
        columns = [found[name] for name in self.shown.names]
        # Made from columns alone, a batch without columns would forget how many rows it has.
        struct_ = pa.Array.from_buffers(pa.struct(list(self.shown)), rows, [None], children=columns)
        return pa.RecordBatch.from_struct_array(struct_)


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


def _windows(starts: Integers, ends: Integers, schema: RecordType) -> Iterator[slice]:
    """The records that are decoded together."""
    most_rows = max(1, min(WINDOW_ROWS, WINDOW_VALUES // weight(schema)))
    first = 0
    while first < starts.size:
        last = int(np.searchsorted(ends, starts[first] + WINDOW_BYTES, side="right"))
        last = max(first + 1, min(last, first + most_rows))
        yield slice(first, last)
        first = last
