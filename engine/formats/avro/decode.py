"""Many Avro records at once, to Arrow columns: field by field, all records in lock-step.

Arrow arrays of any Avro type: leaves are read as such, nested types put together around them.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_field, arrow_type
from lakewarden.engine.formats.avro.fitting import read_decimals
from lakewarden.engine.formats.avro.types import (
    NULL,
    ArrayType,
    AvroType,
    DecimalType,
    EnumType,
    Field,
    FixedType,
    Logical,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
    entry_type,
    weight,
)
from lakewarden.engine.formats.avro.walk import branches, find_items, moved_rows, present, skip
from lakewarden.engine.formats.avro.window import (
    MAXIMUM_WINDOW,
    Crowded,
    Cursor,
    Integers,
    Mask,
    Octets,
    RecordWindow,
    bitmap,
    first_invalid,
    plain_array,
)
from lakewarden.engine.kernel.errors import Defect, InvalidRequest, corrupt

# An item that is null takes one byte, yet has a place in every column within its type. Only few
# records at once may unfold like that; one that goes further alone is an attack on memory.
VALUES_PER_BYTE = 16
FREE_VALUES = 1 << 25


def read_value(window: RecordWindow, type_: AvroType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    """One value of the type in every row, and the cursor behind them."""
    match type_:
        case RecordType():
            return _records(window, type_, cursor)
        case ArrayType(items=items):
            return _lists(window, type_, items, cursor)
        case MapType():
            return _lists(window, type_, entry_type(type_), cursor)
        case UnionType(optional=None):
            return _union(window, type_, cursor)
        case UnionType(optional=value):
            assert value is not None
            return _optional(window, type_, value, cursor)
        case _:
            return read_leaf(window, type_, cursor, None)


def _records(window: RecordWindow, record: RecordType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    rows, columns = len(cursor), []
    for field in record.fields:
        column, cursor = read_value(window, field.type, cursor)
        columns.append(column)
    return pa.Array.from_buffers(arrow_type(record), rows, [None], children=columns), cursor


def _lists(
    window: RecordWindow, type_: ArrayType | MapType, item_type: AvroType, cursor: Cursor
) -> tuple[pa.Array, Cursor]:
    found = find_items(window, item_type, cursor)
    values = len(found.cursor) * weight(item_type)
    if values > FREE_VALUES + VALUES_PER_BYTE * window.size:
        raise Crowded(values)
    items, behind = read_value(window, item_type, found.cursor)
    assert len(behind) == int(found.counts.sum())
    offsets = np.zeros(len(cursor) + 1, np.int32)
    np.cumsum(found.counts, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets)]
    lists = pa.Array.from_buffers(arrow_type(type_), len(cursor), buffers, children=[items])
    return lists, found.after


def _optional(
    window: RecordWindow, union: UnionType, value: AvroType, cursor: Cursor
) -> tuple[pa.Array, Cursor]:
    used, inside = present(window, union, cursor)
    if used.all():
        return read_value(window, value, inside)
    if not used.any():
        return pa.nulls(len(cursor), arrow_type(value)), inside
    if not isinstance(value, RecordType | ArrayType | MapType):
        return read_leaf(window, value, inside, used)
    values, behind = read_value(window, value, inside.only(used))
    return _spread(values, used), moved_rows(inside, used, behind)


def _union(window: RecordWindow, union: UnionType, cursor: Cursor) -> tuple[pa.Array, Cursor]:
    """A struct with a column for each branch, of which every row fills one; null has no column."""
    chosen, inside = branches(window, union, cursor)
    columns = []
    for index, branch in enumerate(union.branches):
        if branch != NULL:
            column, inside = _branch(window, branch, inside, chosen == index)
            columns.append(column)
    used = None if union.null_index is None else chosen != union.null_index
    buffers = [bitmap(used)]
    shown = arrow_type(union)
    return pa.Array.from_buffers(shown, len(cursor), buffers, children=columns), inside


def _branch(
    window: RecordWindow, branch: AvroType, cursor: Cursor, used: Mask
) -> tuple[pa.Array, Cursor]:
    if not used.any():
        return pa.nulls(len(cursor), arrow_type(branch)), cursor
    values, behind = read_value(window, branch, cursor.only(used))
    return _spread(values, used), moved_rows(cursor, used, behind)


def _spread(values: pa.Array, used: Mask) -> pa.Array:
    """The values in the rows in use, nulls in the others."""
    indices: Integers = np.cumsum(used) - 1
    buffers = [bitmap(used), pa.py_buffer(indices)]
    return values.take(pa.Array.from_buffers(pa.int64(), used.size, buffers))


_MILLIS_OF_DAY = 86_400_000
_TIME_LIMITS = {
    Logical.TIME_MILLIS: _MILLIS_OF_DAY,
    Logical.TIME_MICROS: _MILLIS_OF_DAY * 1000,
}


def read_leaf(
    window: RecordWindow, type_: AvroType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    """The values of a type that holds no other type."""
    match type_:
        case PrimitiveType(primitive=Primitive.NULL):
            return pa.nulls(len(cursor)), cursor
        case PrimitiveType(primitive=Primitive.BOOLEAN):
            return _booleans(window, cursor, used)
        case PrimitiveType(primitive=Primitive.INT | Primitive.LONG):
            return _integers(window, type_, cursor, used)
        case PrimitiveType(primitive=Primitive.FLOAT | Primitive.DOUBLE):
            return _floats(window, type_, cursor, used)
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING):
            return _texts(window, type_, cursor, used)
        case EnumType():
            return _enums(window, type_, cursor, used)
        case FixedType():
            return _fixed(window, type_, cursor, used)
        case DecimalType():
            return read_decimals(window, type_, cursor, used)
    raise TypeError(f"{type_} is no leaf")


def _refuse(
    window: RecordWindow, wrong: Mask, used: Mask | None, cursor: Cursor, reason: str
) -> None:
    window.refuse(wrong if used is None else wrong & used, cursor, reason)


def _booleans(window: RecordWindow, cursor: Cursor, used: Mask | None) -> tuple[pa.Array, Cursor]:
    octets = window.octets[cursor.positions]
    _refuse(window, octets > 1, used, cursor, "A boolean is neither 0 nor 1.")
    bits = np.packbits(octets == 1, bitorder="little")
    after = window.moved(cursor, cursor.positions + 1, used)
    return plain_array(pa.bool_(), used, bits, len(cursor)), after


def _integers(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    numbers, after = window.numbers(cursor, used)
    values = numbers
    if type_.primitive is Primitive.INT:
        values = numbers.astype(np.int32)
        _refuse(window, values != numbers, used, cursor, "An int has more than 32 bits.")
    if type_.logical in _TIME_LIMITS:
        outside = (numbers < 0) | (numbers >= _TIME_LIMITS[type_.logical])
        _refuse(window, outside, used, cursor, "A time of day is outside the day.")
    return plain_array(arrow_type(type_), used, values, len(cursor)), after


def _floats(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    words = window.words_at(cursor.positions)
    size = 8
    if type_.primitive is Primitive.FLOAT:
        words, size = words.astype(np.uint32), 4
    after = window.moved(cursor, cursor.positions + size, used)
    return plain_array(arrow_type(type_), used, words, len(cursor)), after


def _texts(
    window: RecordWindow, type_: PrimitiveType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    sizes, inside = window.lengths(cursor, used)
    after = Cursor(inside.positions + sizes, inside.ends)
    binary = _slices(window, inside.positions, after.positions)
    values = pa.Array.from_buffers(
        arrow_type(type_), len(cursor), [bitmap(used), *binary.buffers()[1:]]
    )
    if type_.primitive is Primitive.STRING:
        _check_utf8(window, values, inside)
    return values, after


def _slices(window: RecordWindow, starts: Integers, stops: Integers) -> pa.Array:
    """The bytes between starts and stops, copied together by Arrow.

    Starts and stops in turn are the offsets of a binary array over the window's own bytes; the
    entries with even numbers are the values, those between them the bytes skipped.
    """
    rows = starts.size
    offsets = np.empty(2 * rows + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = stops
    offsets[-1] = stops[-1] if rows else 0
    pieces = pa.Array.from_buffers(
        pa.binary(), 2 * rows, [None, pa.py_buffer(offsets), window.buffer]
    )
    return pieces.take(pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32)))


def _check_utf8(window: RecordWindow, values: pa.Array, begins: Cursor) -> None:
    octets = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if not octets.size or octets.max() < 0x80:
        return
    row = first_invalid(values)
    if row is not None:
        raise window.corrupt(int(begins.positions[row]), "A string is not UTF-8.")


def _enums(
    window: RecordWindow, type_: EnumType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    numbers, after = window.numbers(cursor, used)
    outside = (numbers < 0) | (numbers >= len(type_.symbols))
    _refuse(window, outside, used, cursor, "An enum has no such symbol.")
    if used is not None:
        numbers = np.where(used, numbers, 0)
    indices = plain_array(pa.int64(), used, numbers, len(cursor))
    return pa.array(type_.symbols, pa.string()).take(indices), after


def _fixed(
    window: RecordWindow, type_: FixedType, cursor: Cursor, used: Mask | None
) -> tuple[pa.Array, Cursor]:
    after = window.moved(cursor, cursor.positions + type_.size, used)
    filled = slice(None) if used is None else used
    # Rows not in use still take their room in a column of fixed width.
    room = np.zeros((len(cursor), type_.size), np.uint8)
    room[filled] = window.octets[cursor.positions[filled, np.newaxis] + np.arange(type_.size)]
    return plain_array(arrow_type(type_), used, room, len(cursor)), after


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
