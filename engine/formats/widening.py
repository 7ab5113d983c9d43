"""Widening: Arrow arrays in a type that evolved from theirs.

Numbers become wider numbers or text, struct fields are matched by name and missing ones are null,
and the same goes for what lists and maps hold.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def nullable(type_: pa.DataType) -> pa.DataType:
    """The type with everything inside it nullable, except the keys of maps."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, nullable(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, nullable(type_.item_type))
    return type_


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_string(type_) and pa.types.is_boolean(array.type):
        return pc.if_else(array, "true", "false")
    return array.cast(type_)


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
