"""Arrow columns to Avro records: the bytes of each column for all rows, then joined row by row.

The bytes of plain values, for all rows in one go.

The bytes of values of any Avro type: leaves are written as such, nested types around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.arrow_types import branch_names, is_list
from lakewarden.engine.formats.avro.fitting import decimal_octets, fitted, misfit
from lakewarden.engine.formats.avro.pieces import (
    Cells,
    Piece,
    binary,
    ends_of,
    joined,
    offsets_of,
    sizes_of,
    spread,
    varints,
)
from lakewarden.engine.formats.avro.types import (
    NULL,
    STRING,
    ArrayType,
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
    weight,
)
from lakewarden.engine.formats.avro.window import Integers, Mask, Octets, raw
from lakewarden.engine.kernel.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Codes:
    """The byte in front of an optional value, when it is there and when it is not."""

    present: int
    absent: int


def write_leaf(array: pa.Array, type_: AvroType, codes: Codes | None, place: str) -> list[Piece]:
    """Pieces that together hold each row's value, behind its code if the type is optional."""
    values = fitted(array, type_, place)
    used = valid_rows(values)
    if used is not None and codes is None and type_ != NULL:
        raise unexpected_null(place)
    room = 0 if codes is None else 1
    cells = _cells(values, type_, used, room, place)
    if codes is not None:
        cells = _coded(cells, used, codes)
    return [cells, values] if _follows(type_) else [cells]


def valid_rows(array: pa.Array) -> Mask | None:
    """The rows that hold a value; `None` if all do."""
    if array.null_count == 0:
        return None
    used: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return used


def unexpected_null(place: str) -> InvalidRequest:
    """The error for a null where the type has none."""
    return InvalidRequest(
        "null_value",
        what=f"Column {place} holds a null.",
        why="Its Avro type has no null.",
        now="Fill the nulls, or make the column nullable.",
        column=place,
    )


def _follows(type_: AvroType) -> bool:
    """Whether the value itself is a piece of its own, behind its length."""
    return isinstance(type_, PrimitiveType) and type_.primitive in (
        Primitive.BYTES,
        Primitive.STRING,
    )


def _coded(cells: Cells, used: Mask | None, codes: Codes) -> Cells:
    """Cells with the code in the free room in front, alone in rows not in use."""
    cells.octets[:, 0] = codes.present
    if used is None:
        return Cells(cells.octets, cells.sizes + 1)
    cells.octets[~used, 0] = codes.absent
    return Cells(cells.octets, np.where(used, cells.sizes + 1, 1))


def _cells(values: pa.Array, type_: AvroType, used: Mask | None, room: int, place: str) -> Cells:
    """Bytes of each row behind some free room; nulls get any."""
    match type_:
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING):
            return varints(_numbers(pc.binary_length(values), used), room)
        case PrimitiveType(primitive=Primitive.INT | Primitive.LONG):
            return varints(_numbers(values, used), room)
        case EnumType(symbols=symbols):
            found = pc.index_in(values, pa.array(symbols, pa.string()).cast(values.type))
            if found.null_count > values.null_count:
                raise misfit(place, type_, "A value is none of the symbols.")
            return varints(_numbers(found, used), room)
        case FixedType(size=size):
            return _behind(room, _fixed(values, size, used, type_, place))
        case DecimalType():
            octets, sizes = decimal_octets(values, type_, used, place)
            return Cells(_behind(room, octets).octets, sizes)
        case PrimitiveType(primitive=Primitive.NULL):
            return _behind(room, np.zeros((len(values), 0), np.uint8))
        case PrimitiveType(primitive=Primitive.BOOLEAN):
            return _behind(room, raw(values.cast(pa.uint8()), np.uint8, 1))
        case _:
            return _behind(room, raw(values, np.uint8, values.type.bit_width // 8))


def _numbers(values: pa.Array, used: Mask | None) -> Integers:
    """The integers that an array keeps, zero in place of nulls."""
    dtype = np.int32 if values.type.bit_width == 32 else np.int64
    numbers = raw(values, dtype, 1)[:, 0].astype(np.int64)
    return numbers if used is None else np.where(used, numbers, 0)


def _fixed(values: pa.Array, size: int, used: Mask | None, type_: AvroType, place: str) -> Octets:
    lengths = _numbers(pc.binary_length(values), used)
    if ((lengths != size) if used is None else used & (lengths != size)).any():
        raise misfit(place, type_, f"A value has not {size} bytes.")
    octets = np.zeros((len(values), size), np.uint8)
    # Dropping the nulls drops what may stand in their place, too.
    present = values.drop_null()
    rows = slice(None) if used is None else used
    octets[rows] = _content(present).reshape(len(present), size)
    return octets


def _content(one: pa.Array) -> Octets:
    """All bytes of a large binary array."""
    offsets = offsets_of(one)
    content = np.frombuffer(one.buffers()[2] or b"", np.uint8)
    return content[offsets[0] : offsets[-1]]


def _behind(room: int, octets: Octets) -> Cells:
    """Bytes that all count, with free room in front of each row."""
    rows, width = octets.shape
    if room:
        octets = np.concatenate([np.empty((rows, room), np.uint8), octets], axis=1)
    return Cells(octets, np.full(rows, width))


def write_value(array: pa.Array, type_: AvroType, place: str) -> list[Piece]:
    """Pieces that together hold each row's value; `place` names the column in errors."""
    match type_:
        case UnionType(optional=None):
            return _union(array, type_, place)
        case UnionType(optional=value):
            assert value is not None
            return _optional(array, type_, value, place)
        case RecordType() | ArrayType() | MapType():
            if array.null_count:
                raise unexpected_null(place)
            return _nested(array, type_, place)
        case _:
            return write_leaf(array, type_, None, place)


def _nested(array: pa.Array, type_: RecordType | ArrayType | MapType, place: str) -> list[Piece]:
    """The pieces of values none of which is null."""
    match type_:
        case RecordType():
            return write_fields(_children(array, type_, place), type_, f"{place}.")
        case ArrayType(items=items) if is_list(array.type):
            sizes = pc.list_value_length(array).to_numpy().astype(np.int64)
            return _blocks(sizes, write_value(pc.list_flatten(array), items, f"{place}[]"))
        case MapType(values=values) if pa.types.is_map(array.type):
            offsets = array.offsets.to_numpy()
            begin, sizes = offsets[0], np.diff(offsets).astype(np.int64)
            keys = array.keys.slice(begin, offsets[-1] - begin)
            inner = array.items.slice(begin, offsets[-1] - begin)
            pieces = write_value(keys, STRING, f"{place}[key]")
            return _blocks(sizes, pieces + write_value(inner, values, f"{place}[]"))
    raise misfit(place, type_, f"Its type {array.type} is another one.")


def write_fields(columns: Sequence[pa.Array], record: RecordType, place: str) -> list[Piece]:
    """The pieces of records, from their columns in the order of the fields."""
    pieces: list[Piece] = []
    for column, field in zip(columns, record.fields, strict=True):
        pieces += write_value(column, field.type, place + field.name)
    return pieces


def order_of(names: Sequence[str], record: RecordType, place: str) -> list[int]:
    """Where each field of the record is among the names, which must be the same names."""
    fields = [field.name for field in record.fields]
    if sorted(names) != sorted(fields):
        odd = sorted(set(names) ^ set(fields)) or [name for name in names if names.count(name) > 1]
        raise InvalidRequest(
            "columns_differ",
            what=f"{place or 'The table'} does not have the columns of its Avro schema.",
            why=f"These differ: {', '.join(odd)}.",
            now="Give each column of the schema once, and no other.",
            columns=tuple(odd),
        )
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in fields]


def _children(array: pa.Array, record: RecordType, place: str) -> list[Piece]:
    if not pa.types.is_struct(array.type):
        raise misfit(place, record, f"Its type {array.type} is another one.")
    return [array.field(at) for at in order_of([one.name for one in array.type], record, place)]


def _blocks(sizes: Integers, items: list[Piece]) -> list[Piece]:
    """Arrays or maps out of their items: one block of them all, then an empty one."""
    together = joined(items, int(sizes.sum()))
    content = binary(offsets_of(together)[ends_of(sizes)], together.buffers()[2])
    ending = Cells(np.zeros((sizes.size, 1), np.uint8), (sizes > 0).astype(np.int64))
    return [varints(sizes), content, ending]


def _optional(array: pa.Array, union: UnionType, value: AvroType, place: str) -> list[Piece]:
    null_index = union.null_index or 0
    codes = Codes(present=2 * (1 - null_index), absent=2 * null_index)
    if not isinstance(value, RecordType | ArrayType | MapType):
        return write_leaf(array, value, codes, place)
    if pa.types.is_null(array.type):
        return write_leaf(array, NULL, codes, place)
    used = valid_rows(array)
    if used is None:
        front = np.full((len(array), 1), codes.present, np.uint8)
        return [Cells(front, _ones(array)), *_nested(array, value, place)]
    front = np.where(used, codes.present, codes.absent).astype(np.uint8)[:, np.newaxis]
    pieces: list[Piece] = [Cells(front, _ones(array))]
    if used.any():
        pieces.append(_spread_rows(array, used, value, place))
    return pieces


def _union(array: pa.Array, union: UnionType, place: str) -> list[Piece]:
    """A struct with a column for each branch, of which every row fills at most one."""
    if not pa.types.is_struct(array.type):
        raise misfit(place, union, f"Its type {array.type} is another one.")
    names = [field.name for field in array.type]
    unknown = set(names) - set(branch_names(union))
    if unknown or len(set(names)) < len(names):
        raise misfit(place, union, f"It has {names}, not its branches.")
    used = valid_rows(array)
    chosen = np.full(len(array), -1 if union.null_index is None else union.null_index)
    filled, pieces = np.zeros(len(array), np.int64), []
    for at, (name, branch) in enumerate(zip(branch_names(union), union.branches, strict=True)):
        if branch != NULL and name in names:
            column = array.field(name)
            rows = column.is_valid().to_numpy(zero_copy_only=False)
            rows = rows if used is None else rows & used
            if rows.any():
                pieces.append(_spread_rows(column, rows, branch, f"{place}.{name}"))
            chosen[rows] = at
            filled += rows
    if (filled > 1).any():
        raise misfit(place, union, "A row has values in several branches.")
    if (chosen < 0).any():
        raise unexpected_null(place)
    return [varints(chosen), *pieces]


def _spread_rows(array: pa.Array, used: Mask, type_: AvroType, place: str) -> pa.Array:
    """One piece with the values of the rows in use, and no bytes in the others."""
    values = array.filter(pa.array(used))
    return spread(joined(write_value(values, type_, place), len(values)), used)


def _ones(array: pa.Array) -> Integers:
    return np.ones(len(array), np.int64)


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
