"""The bytes of plain values, for all rows in one go."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.arrays import raw
from lakewarden.engine.formats.avro.decimals import decimal_octets
from lakewarden.engine.formats.avro.fitting import fitted, misfit
from lakewarden.engine.formats.avro.pieces import Cells, Piece, offsets_of, varints
from lakewarden.engine.formats.avro.types import (
    NULL,
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Primitive,
    PrimitiveType,
)
from lakewarden.engine.formats.avro.window import Integers, Mask, Octets
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
