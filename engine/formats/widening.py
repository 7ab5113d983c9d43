"""Widening: Arrow arrays in a type that evolved from theirs.

Numbers become wider numbers, decimals or text, dates become text, and text becomes what it spells.
Struct fields are matched by name and missing ones are null, and the same goes for what lists and
maps hold.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Powers of ten between which Java writes a number without exponent.
_PLAIN_POWERS = range(-3, 7)


def nullable(type_: pa.DataType) -> pa.DataType:
    """The type with everything inside it nullable, except the keys of maps."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, nullable(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, nullable(type_.item_type))
    return type_


# Wider than any decimal of Arrow and any floating point number.
_EXACT = Context(prec=400)


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _cast(array.cast(kind.value_type), type_)
    if pa.types.is_string(type_) and pa.types.is_boolean(kind):
        return pc.if_else(array, "true", "false")
    if pa.types.is_floating(kind) and pa.types.is_string(type_):
        return _by_value(array, java_number, type_)
    if pa.types.is_decimal(type_) and not pa.types.is_decimal(kind):
        return _by_value(array, lambda value: _decimal(value, type_), type_)
    if pa.types.is_integer(kind) and pa.types.is_floating(type_):
        # The nearest one; Arrow is asked not to mind.
        return array.cast(type_, safe=False)
    return array.cast(type_)


def java_number(value: float | np.floating) -> str:
    """A floating point number as Java spells it; releases before 19 add digits to few of them."""
    if np.isnan(value):
        return "NaN"
    sign = "-" if np.signbit(value) else ""
    if np.isinf(value):
        return f"{sign}Infinity"
    if not value:
        return f"{sign}0.0"
    number = value if value > 0 else -value
    mantissa, _, exponent = np.format_float_scientific(number, trim="-").partition("e")
    digits, power = mantissa.replace(".", ""), int(exponent)
    if power not in _PLAIN_POWERS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{sign}{whole}.{digits[power + 1 :] or '0'}"


def _by_value(array: pa.Array, made: Callable[..., object], type_: pa.DataType) -> pa.Array:
    """Each different value made into one of another type."""
    encoded = array.dictionary_encode()
    single = pa.types.is_float32(array.type)
    values = [np.float32(one) if single else one for one in encoded.dictionary.to_pylist()]
    return pa.array([made(one) for one in values], type_).take(encoded.indices)


def _decimal(value: object, type_: pa.DataType) -> Decimal:
    """A number or a text as a decimal, rounded as Java does."""
    text = str(value).strip()
    try:
        found = Decimal(text).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        raise pa.ArrowInvalid(f"{text!r} is no {type_}") from None
    if len(found.as_tuple().digits) > type_.precision:
        raise pa.ArrowInvalid(f"{text} does not fit into {type_}")
    return found


# What becomes of values that hold no others.
Leaf = Callable[[pa.Array, pa.DataType], pa.Array]


def widen(array: pa.Array, type_: pa.DataType, leaf: Leaf = _cast) -> pa.Array:
    """An array in a wider or evolved type; struct fields are matched by name."""
    if array.type == type_:
        return array
    if pa.types.is_struct(type_) and pa.types.is_struct(array.type):
        return _widen_struct(array, type_, leaf)
    if pa.types.is_list(type_) and _is_list(array.type):
        return _widen_list(array, type_, leaf)
    if pa.types.is_map(type_) and pa.types.is_map(array.type):
        return _widen_map(array, type_, leaf)
    return leaf(array, type_)


def widen_stored(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same for what a file holds.

    Releases before 1.1 wrote milliseconds and called them microseconds. Where a table has
    milliseconds, its files have them, too, whatever they say: Java reads them so.
    """
    return widen(array, type_, _cast_stored)


def says_micros(stored: pa.DataType, type_: pa.DataType) -> bool:
    """Whether a file says microseconds somewhere, and the table milliseconds."""
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(type_):
        return bool(stored.unit == "us" and type_.unit == "ms")
    if pa.types.is_struct(stored) and pa.types.is_struct(type_):
        wanted = {field.name: field.type for field in type_}
        return any(says_micros(one.type, wanted.get(one.name, one.type)) for one in stored)
    if pa.types.is_map(stored) and pa.types.is_map(type_):
        return says_micros(stored.item_type, type_.item_type)
    if _is_list(stored) and _is_list(type_):
        return says_micros(stored.value_type, type_.value_type)
    return False


def with_names(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """The column with the names of a type that differs from its own in nothing else."""
    if column.type == type_:
        return column
    return pa.chunked_array([_named(chunk, type_) for chunk in column.chunks], type=type_)


def _named(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_struct(type_):
        children = [_named(array.field(at), field.type) for at, field in enumerate(type_)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=_null_mask(array))
    if pa.types.is_list(type_):
        values = _named(array.values, type_.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=type_, mask=_null_mask(array))
    if pa.types.is_map(type_):
        items, mask = _named(array.items, type_.item_type), _null_mask(array)
        return pa.MapArray.from_arrays(_offsets(array), array.keys, items, type=type_, mask=mask)
    return array


def _cast_stored(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if says_micros(array.type, type_):
        return array.cast(pa.int64()).cast(type_)
    return _cast(array, type_)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _widen_struct(array: pa.StructArray, type_: pa.StructType, leaf: Leaf) -> pa.StructArray:
    present = {array.type.field(number).name: number for number in range(array.type.num_fields)}
    children = []
    for number in range(type_.num_fields):
        field = type_.field(number)
        if field.name in present:
            children.append(widen(array.field(present[field.name]), field.type, leaf))
        else:
            children.append(pa.nulls(len(array), field.type))
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=_null_mask(array))


def _widen_list(array: pa.ListArray, type_: pa.ListType, leaf: Leaf) -> pa.ListArray:
    values = widen(array.values, type_.value_type, leaf)
    return pa.ListArray.from_arrays(_offsets(array), values, type=type_, mask=_null_mask(array))


def _widen_map(array: pa.MapArray, type_: pa.MapType, leaf: Leaf) -> pa.MapArray:
    keys, items = widen(array.keys, type_.key_type), widen(array.items, type_.item_type, leaf)
    return pa.MapArray.from_arrays(_offsets(array), keys, items, type=type_, mask=_null_mask(array))


def _offsets(array: pa.ListArray | pa.MapArray) -> pa.Array:
    # A fresh copy: Arrow refuses a null mask together with offsets that are themselves a slice.
    return pa.array(np.array(array.offsets.to_numpy(), dtype=np.int32))


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
