"""The reference twin: Avro values to bytes and to Arrow, one at a time, in plain Python.

A value is what fastavro takes without logical types, but decimals are unscaled numbers, and a value
of a union with several types is a pair of the branch's number and its value.
"""

import struct
from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_schema, branch_names
from lakewarden.engine.formats.avro.types import (
    NULL,
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
)

EXACT = Context(prec=100)


def datum(type_: AvroType, value: object) -> bytes:
    """The bytes of one value."""
    match type_, value:
        case PrimitiveType(primitive=primitive), _:
            return _plain_datum(primitive, value)
        case DecimalType(fixed=None), int(number):
            return _sized(_shortest(number))
        case DecimalType(fixed=FixedType(size=size)), int(number):
            return number.to_bytes(size, "big", signed=True)
        case FixedType(), bytes(content):
            return content
        case EnumType(symbols=symbols), str(symbol):
            return number_bytes(symbols.index(symbol))
        case ArrayType(items=items), list(found):
            return _block(len(found), b"".join(datum(items, one) for one in found))
        case MapType(values=inner), dict(found):
            pairs = (_sized(key.encode()) + datum(inner, one) for key, one in found.items())
            return _block(len(found), b"".join(pairs))
        case RecordType(fields=fields), dict(found):
            return b"".join(datum(field.type, found[field.name]) for field in fields)
        case UnionType(branches=branches), _:
            at, inner = branch_of(type_, value)
            return number_bytes(at) + datum(branches[at], inner)
    raise AssertionError(f"{value!r} is no {type_}")


def branch_of(union: UnionType, value: object) -> tuple[int, object]:
    """The number of a value's branch, and the value in it."""
    if union.optional is None:
        assert isinstance(value, tuple)
        return value
    null_index = union.branches.index(NULL)
    return (null_index if value is None else 1 - null_index), value


def shown(type_: AvroType, value: object) -> object:
    """The value as pyarrow takes it to build an array."""
    match type_, value:
        case DecimalType(scale=scale), int(number):
            return EXACT.create_decimal(Decimal(number)).scaleb(-scale, EXACT)
        case ArrayType(items=items), list(found):
            return [shown(items, one) for one in found]
        case MapType(values=inner), dict(found):
            return [(key, shown(inner, one)) for key, one in found.items()]
        case RecordType(fields=fields), dict(found):
            return {field.name: shown(field.type, found[field.name]) for field in fields}
        case UnionType(branches=branches), _:
            at, inner = branch_of(type_, value)
            if type_.optional is not None:
                return None if inner is None else shown(type_.optional, inner)
            if branches[at] == NULL:
                return None
            return {branch_names(type_)[at]: shown(branches[at], inner)}
        case _:
            return value


def plain(type_: AvroType, value: object) -> object:
    """The value as fastavro reads it when the schema has no logical types."""
    match type_, value:
        case DecimalType(fixed=None), int(number):
            return _shortest(number)
        case DecimalType(fixed=FixedType(size=size)), int(number):
            return number.to_bytes(size, "big", signed=True)
        case ArrayType(items=items), list(found):
            return [plain(items, one) for one in found]
        case MapType(values=inner), dict(found):
            return {key: plain(inner, one) for key, one in found.items()}
        case RecordType(fields=fields), dict(found):
            return {field.name: plain(field.type, found[field.name]) for field in fields}
        case UnionType(branches=branches), _:
            at, inner = branch_of(type_, value)
            return plain(branches[at], inner)
        case _:
            return value


def table_of(record: RecordType, values: Sequence[object]) -> pa.Table:
    """The records as columns, built from Python values."""
    shape = arrow_schema(record)
    struct_ = pa.array([shown(record, value) for value in values], pa.struct(list(shape)))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(struct_)], shape)


def block_of(
    record: RecordType, values: Sequence[object]
) -> tuple[bytes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The records' bytes one after the other, and where each begins; the last place is the end."""
    datums = [datum(record, value) for value in values]
    places = np.cumsum([0, *map(len, datums)], dtype=np.int64)
    return b"".join(datums), places


def number_bytes(number: int) -> bytes:
    """A zigzag varint."""
    folded, octets = (number << 1) ^ (number >> 63), bytearray()
    while folded > 127:
        octets.append(folded & 127 | 128)
        folded >>= 7
    octets.append(folded)
    return bytes(octets)


def _plain_datum(primitive: Primitive, value: object) -> bytes:
    match primitive, value:
        case Primitive.NULL, None:
            return b""
        case Primitive.BOOLEAN, bool(flag):
            return bytes([flag])
        case ((Primitive.INT | Primitive.LONG), int(number)):
            return number_bytes(number)
        case Primitive.FLOAT, _:
            return struct.pack("<f", value)
        case Primitive.DOUBLE, _:
            return struct.pack("<d", value)
        case Primitive.BYTES, bytes(content):
            return _sized(content)
        case Primitive.STRING, str(text):
            return _sized(text.encode())
    raise AssertionError(f"{value!r} is no {primitive}")


def _sized(content: bytes) -> bytes:
    return number_bytes(len(content)) + content


def _block(count: int, content: bytes) -> bytes:
    return number_bytes(count) + content + b"\x00" if count else b"\x00"


def _shortest(number: int) -> bytes:
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)
