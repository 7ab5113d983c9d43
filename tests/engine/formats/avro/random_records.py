"""Random Avro schemas, and random records of them; the twin in `twin.py` says what they mean."""

import json
from collections.abc import Iterator
from itertools import count

from hypothesis import strategies as st

from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.types import (
    ArrayType,
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    MapType,
    Primitive,
    PrimitiveType,
    RecordType,
    UnionType,
)

Json = object

PLAIN = ("boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = (
    *({"type": "int", "logicalType": meaning} for meaning in ("date", "time-millis")),
    *(
        {"type": "long", "logicalType": meaning}
        for meaning in (
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
            "local-timestamp-nanos",
        )
    ),
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 38},
    {"type": "bytes", "logicalType": "decimal", "precision": 70, "scale": 5},
)
NAMED = (
    {"type": "fixed", "size": 5},
    {"type": "enum", "symbols": ["A", "B", "C"]},
    {"type": "fixed", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 2},
    {"type": "fixed", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 3},
    # Wider than its digits need, and too wide for 128 bits.
    {"type": "fixed", "size": 21, "logicalType": "decimal", "precision": 10},
    {"type": "fixed", "size": 32, "logicalType": "decimal", "precision": 76, "scale": 76},
)
INTS = st.sampled_from([0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31)])
LONGS = st.sampled_from([2**k - 1 for k in range(0, 64, 7)] + [2**63 - 1, -(2**63), 2**56])
TEXTS = st.sampled_from(["", "a", "ü€", "\U0001f600", "x" * 63, "y" * 64, "z" * 300])
BYTES = st.sampled_from([b"", b"\x00", b"\xff\xfe", b"q" * 64, b"w" * 9000])
TIME_LIMITS = {Logical.TIME_MILLIS: 86_400_000, Logical.TIME_MICROS: 86_400_000_000}


def record_types() -> st.SearchStrategy[RecordType]:
    """Records with a few fields of any types."""
    return _schemas().map(lambda schema: parse_schema(json.dumps(schema), "random.avsc"))


@st.composite
def _schemas(draw: st.DrawFn) -> Json:
    return draw(_record(count(), 2))


@st.composite
def _record(draw: st.DrawFn, numbers: Iterator[int], nesting: int, least: int = 0) -> Json:
    fields = [
        {"name": f"f{place}", "type": draw(_type(numbers, nesting))}
        for place in range(draw(st.integers(least, 4)))
    ]
    return {"type": "record", "name": f"a.b.r{next(numbers)}", "fields": fields}


@st.composite
def _type(draw: st.DrawFn, numbers: Iterator[int], nesting: int) -> Json:
    kinds = ["plain", "logical", "named", "optional", "optional"]
    if nesting:
        kinds += ["array", "map", "record", "union"]
    match draw(st.sampled_from(kinds)):
        case "plain":
            return draw(st.sampled_from(PLAIN))
        case "logical":
            return draw(st.sampled_from(LOGICAL))
        case "named":
            return draw(_named(numbers))
        case "array":
            return {"type": "array", "items": draw(_type(numbers, nesting - 1))}
        case "map":
            return {"type": "map", "values": draw(_type(numbers, nesting - 1))}
        case "record":
            return draw(_record(numbers, nesting - 1, least=1))
        case "optional":
            return draw(_optional(numbers, nesting))
        case _:
            return draw(_union(numbers, nesting - 1))


@st.composite
def _named(draw: st.DrawFn, numbers: Iterator[int]) -> Json:
    kind = draw(st.sampled_from(NAMED))
    return {**kind, "name": f"n{next(numbers)}"}


@st.composite
def _optional(draw: st.DrawFn, numbers: Iterator[int], nesting: int) -> Json:
    inner = draw(_type(numbers, nesting).filter(lambda schema: not isinstance(schema, list)))
    return ["null", inner] if draw(st.booleans()) else [inner, "null"]


@st.composite
def _union(draw: st.DrawFn, numbers: Iterator[int], nesting: int) -> Json:
    plain = draw(st.lists(st.sampled_from(["null", *PLAIN]), min_size=1, max_size=3, unique=True))
    return [*plain, draw(_record(numbers, nesting)), draw(_named(numbers))]


def values(type_: AvroType) -> st.SearchStrategy[object]:
    """Values of a type, in the form that the twin understands."""
    match type_:
        case PrimitiveType():
            return _plain_values(type_)
        case DecimalType(precision=precision):
            most = 10**precision - 1
            edges = [0, 1, -1, 127, 128, -128, -129, most, -most]
            return st.sampled_from([edge for edge in edges if abs(edge) <= most])
        case FixedType(size=size):
            return st.binary(min_size=size, max_size=size)
        case EnumType(symbols=symbols):
            return st.sampled_from(symbols)
        case ArrayType(items=items):
            return st.lists(values(items), max_size=4)
        case MapType(values=inner):
            return st.dictionaries(TEXTS, values(inner), max_size=3)
        case RecordType(fields=fields):
            return st.fixed_dictionaries({field.name: values(field.type) for field in fields})
        case UnionType(branches=branches):
            if type_.optional is not None:
                return st.one_of(values(type_.optional), st.none())
            return st.one_of([st.tuples(st.just(at), values(b)) for at, b in enumerate(branches)])


def _plain_values(type_: PrimitiveType) -> st.SearchStrategy[object]:
    if type_.logical in TIME_LIMITS:
        return st.sampled_from([0, 1, TIME_LIMITS[type_.logical] - 1])
    match type_.primitive:
        case Primitive.NULL:
            return st.none()
        case Primitive.BOOLEAN:
            return st.booleans()
        case Primitive.INT:
            return INTS
        case Primitive.LONG:
            return LONGS
        case Primitive.FLOAT:
            return st.floats(width=32, allow_nan=False)
        case Primitive.DOUBLE:
            return st.floats(allow_nan=False)
        case Primitive.BYTES:
            return BYTES
        case _:
            return TEXTS


@st.composite
def records(draw: st.DrawFn, most: int = 6) -> tuple[RecordType, list[object]]:
    """A record type and some records, repeated often enough for steps over many rows."""
    type_ = draw(record_types())
    found = draw(st.lists(values(type_), max_size=most))
    return type_, found * draw(st.sampled_from([1, 1, 60]))
