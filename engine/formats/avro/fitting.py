"""Arrow arrays made to fit an Avro type: the width and layout may change, a value never does."""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

from lakewarden.engine.formats.avro.arrow_types import arrow_type
from lakewarden.engine.formats.avro.types import (
    AvroType,
    DecimalType,
    EnumType,
    FixedType,
    Logical,
    Primitive,
    PrimitiveType,
)
from lakewarden.engine.kernel.errors import InvalidRequest

_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())
_NUMBERS: dict[Primitive, Callable[[pa.DataType], bool]] = {
    Primitive.BOOLEAN: types.is_boolean,
    Primitive.INT: types.is_integer,
    Primitive.LONG: types.is_integer,
    # A wider float would be rounded.
    Primitive.FLOAT: lambda type_: type_ in (pa.float16(), pa.float32()),
    Primitive.DOUBLE: types.is_floating,
}


def fitted(array: pa.Array, type_: AvroType, place: str) -> pa.Array:
    """The values of a leaf in its own Arrow type; those of any length as large binary."""
    if types.is_dictionary(array.type):
        array = _unfolded(array)
    wanted = pa.large_binary() if _has_lengths(type_) else arrow_type(type_)
    if types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if not _may_come_from(array.type, type_):
        raise misfit(place, type_, f"Its type {array.type} is another one.")
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise misfit(place, type_, f"{error}.") from error


def misfit(place: str, type_: AvroType, why: str) -> InvalidRequest:
    """The error for values that have no place in their type."""
    return InvalidRequest(
        "value_does_not_fit",
        what=f"Column {place} does not fit the type {type_}.",
        why=why,
        now="Cast the column, or correct its values.",
        column=place,
    )


def _unfolded(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    if values.type in (pa.string_view(), pa.binary_view()):
        # Arrow cannot take from views.
        values = values.cast(
            pa.large_string() if values.type == pa.string_view() else pa.large_binary()
        )
    return values.take(array.indices)


def _has_lengths(type_: AvroType) -> bool:
    match type_:
        case PrimitiveType(primitive=Primitive.BYTES | Primitive.STRING):
            return True
        case _:
            return isinstance(type_, FixedType | EnumType)


def _may_come_from(source: pa.DataType, type_: AvroType) -> bool:
    """Whether every value of the source has a meaning in the type."""
    match type_:
        case EnumType() | PrimitiveType(primitive=Primitive.STRING):
            return source in _TEXTS
        case FixedType() | PrimitiveType(primitive=Primitive.BYTES):
            return source in _BINARIES or bool(types.is_fixed_size_binary(source))
        case DecimalType():
            return bool(types.is_decimal(source))
        case PrimitiveType(primitive=primitive, logical=None):
            return primitive in _NUMBERS and _NUMBERS[primitive](source)
        case PrimitiveType(logical=Logical.DATE):
            return bool(types.is_date(source))
        case PrimitiveType(logical=Logical.TIME_MILLIS | Logical.TIME_MICROS):
            return bool(types.is_time(source))
    # A moment in time and a reading of some clock are not the same.
    has_zone = arrow_type(type_).tz is not None
    return bool(types.is_timestamp(source)) and (source.tz is not None) == has_zone
