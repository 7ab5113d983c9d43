"""Avro types as values: a small frozen tree in which every named type is already resolved."""

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class Primitive(Enum):
    """The types that Avro knows by a plain name."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


class Logical(Enum):
    """A meaning laid over a primitive; decimals are a type of their own."""

    DATE = "date"
    TIME_MILLIS = "time-millis"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    LOCAL_TIMESTAMP_MILLIS = "local-timestamp-millis"
    LOCAL_TIMESTAMP_MICROS = "local-timestamp-micros"
    LOCAL_TIMESTAMP_NANOS = "local-timestamp-nanos"
    UUID = "uuid"


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A primitive, perhaps with a logical meaning."""

    primitive: Primitive
    logical: Logical | None = None


@dataclass(frozen=True, slots=True)
class FixedType:
    """A fixed number of bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class DecimalType:
    """An unscaled big-endian number, in bytes of its own length or in a fixed."""

    precision: int
    scale: int
    fixed: FixedType | None = None


@dataclass(frozen=True, slots=True)
class EnumType:
    """One of the symbols, stored as its number."""

    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Any number of items."""

    items: "AvroType"


@dataclass(frozen=True, slots=True)
class MapType:
    """Any number of string keys with values."""

    values: "AvroType"


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of the branches, stored after its number."""

    branches: tuple["AvroType", ...]
    # The number of the null branch, if there is one.
    null_index: int | None = field(init=False, compare=False, repr=False)
    # The other branch of a union of null with one more type; `None` for all other unions.
    optional: "AvroType | None" = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Kept, since decoding asks at every value.
        null_index = self.branches.index(NULL) if NULL in self.branches else None
        is_pair = null_index is not None and len(self.branches) == 2
        optional = self.branches[1 - (null_index or 0)] if is_pair else None
        object.__setattr__(self, "null_index", null_index)
        object.__setattr__(self, "optional", optional)


@dataclass(frozen=True, slots=True)
class Field:
    """A named place in a record; `default` is JSON text, `None` without a default."""

    name: str
    type: "AvroType"
    default: str | None = None


@dataclass(frozen=True, slots=True)
class RecordType:
    """Named fields one after the other."""

    name: str
    fields: tuple[Field, ...]
    weight: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # A record named in several places is one object in memory but many in a decoded value, so
        # its full size is kept here: walking the tree to count could take exponential time.
        object.__setattr__(self, "weight", 1 + sum(weight(one.type) for one in self.fields))
        object.__setattr__(
            self, "depth", 1 + max((depth(one.type) for one in self.fields), default=0)
        )
        object.__setattr__(self, "_hash", hash((self.name, self.fields)))

    def __hash__(self) -> int:
        # Types are keys of what is remembered about them.
        return self._hash


AvroType: TypeAlias = (
    PrimitiveType
    | FixedType
    | DecimalType
    | EnumType
    | ArrayType
    | MapType
    | UnionType
    | RecordType
)

NULL = PrimitiveType(Primitive.NULL)
STRING = PrimitiveType(Primitive.STRING)

_EXACT_SIZES = {
    Primitive.NULL: 0,
    Primitive.BOOLEAN: 1,
    Primitive.FLOAT: 4,
    Primitive.DOUBLE: 8,
}


def weight(type_: AvroType) -> int:
    """How many types a value of this type holds, itself included."""
    match type_:
        case RecordType():
            return type_.weight
        case ArrayType(items=inner) | MapType(values=inner):
            return 1 + weight(inner)
        case UnionType(branches=branches):
            return 1 + sum(weight(branch) for branch in branches)
        case _:
            return 1


def depth(type_: AvroType) -> int:
    """How deeply types stand within this type, itself included."""
    match type_:
        case RecordType():
            return type_.depth
        case ArrayType(items=inner) | MapType(values=inner):
            return 1 + depth(inner)
        case UnionType(branches=branches):
            return 1 + max((depth(branch) for branch in branches), default=0)
        case _:
            return 1


def exact_size(type_: AvroType) -> int | None:
    """The size in bytes that every value has; `None` if sizes differ."""
    match type_:
        case PrimitiveType(primitive=primitive):
            return _EXACT_SIZES.get(primitive)
        case FixedType(size=size) | DecimalType(fixed=FixedType(size=size)):
            return size
        case RecordType(fields=fields):
            total = 0
            for one in fields:
                size_ = exact_size(one.type)
                if size_ is None:
                    return None
                total += size_
            return total
        case _:
            return None


def minimum_size(type_: AvroType) -> int:
    """The fewest bytes a value can take."""
    if isinstance(type_, RecordType):
        return sum(minimum_size(one.type) for one in type_.fields)
    exact = exact_size(type_)
    return 1 if exact is None else exact


def empty_places(type_: AvroType) -> int:
    """How many values that take no bytes there may be beyond the number of bytes, at most."""
    match type_:
        case RecordType(fields=fields) if fields:
            return sum(empty_places(one.type) for one in fields)
        case UnionType(branches=branches):
            return max(empty_places(branch) for branch in branches) - 1
        case _:
            return -minimum_size(type_) or 1


def branch_key(type_: AvroType) -> str:
    """The name by which Avro tells the branches of a union apart."""
    match type_:
        case PrimitiveType(primitive=primitive):
            return primitive.value
        case DecimalType(fixed=None):
            return Primitive.BYTES.value
        case DecimalType(fixed=FixedType(name=name)):
            return name
        case RecordType(name=name) | EnumType(name=name) | FixedType(name=name):
            return name
        case ArrayType():
            return "array"
        case MapType():
            return "map"
        case _:
            return "union"


def entry_type(type_: MapType) -> RecordType:
    """The entries of a map, seen as records of a key and a value."""
    return RecordType("entry", (Field("key", STRING), Field("value", type_.values)))
