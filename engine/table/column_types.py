"""Column types of a table: what Arrow types become when written, and which may follow which.

What is normalised loses nothing: narrow and unsigned integers widen, moments are kept in
microseconds. What has no counterpart in Avro and Spark is refused.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lakewarden.engine.formats.avro.arrow_types import LIST_ITEM, MAP_VALUE, is_list
from lakewarden.engine.kernel.errors import InvalidRequest

_TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
_BINARIES = (
    types.is_binary,
    types.is_large_binary,
    types.is_binary_view,
    types.is_fixed_size_binary,
)
_INTS = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_LONGS = (pa.int64(), pa.uint32())
_PRECISION_MAX = 38
Wider = Mapping[pa.DataType, tuple[pa.DataType, ...]]
# A column may become what stands behind it; nothing is rounded on the way.
WIDER: Wider = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
# Frames have longs for want of anything else, so that these tell nothing by their type.
WIDER_BY_TYPE: Wider = {pa.int32(): (pa.float64(),), pa.float32(): (pa.float64(),)}
AS_IT_IS: Wider = {}


class TypeChange(Enum):
    """What ALTER TABLE does to the values of a column of one type that becomes another."""

    NONE = "none"
    # Files of the older type are read as if they had the newer one, by all readers.
    WIDER = "wider"
    # All values become others: texts, nearest numbers, decimals.
    CONVERTED = "converted"
    # The same, and some values may have no place.
    CHECKED = "checked"


def change_of_type(before: pa.DataType, after: pa.DataType) -> TypeChange | None:
    """How a column may become one of another type; None where Hudi does not allow it."""
    if before == after:
        return TypeChange.NONE
    if after in WIDER.get(before, ()):
        return TypeChange.WIDER
    numbers = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
    if after == pa.string():
        converts = before in (*numbers, pa.date32()) or types.is_decimal(before)
        return TypeChange.CONVERTED if converts else None
    if before == pa.string():
        converts = after == pa.date32() or types.is_decimal(after)
        return TypeChange.CHECKED if converts else None
    if types.is_decimal(before) and types.is_decimal(after):
        digits = after.precision - after.scale >= before.precision - before.scale
        return TypeChange.CONVERTED if digits and after.scale >= before.scale else None
    if before in numbers and types.is_decimal(after):
        return TypeChange.CHECKED
    if before in numbers and after in numbers and numbers.index(before) < numbers.index(after):
        return TypeChange.CONVERTED
    return None


def table_type(type_: pa.DataType, place: str) -> pa.DataType:
    """The type in which a table keeps values of an Arrow type; `place` names the column."""
    if types.is_dictionary(type_):
        return table_type(type_.value_type, place)
    if types.is_struct(type_):
        return _struct(type_, place)
    if is_list(type_):
        return pa.list_(pa.field(LIST_ITEM, table_type(type_.value_type, f"{place}[]")))
    if types.is_map(type_):
        if not any(matches(type_.key_type) for matches in _TEXTS):
            raise _unsupported(type_, place, "Avro maps have keys of text")
        return pa.map_(pa.string(), pa.field(MAP_VALUE, table_type(type_.item_type, place)))
    return _leaf(type_, place)


def widened(
    current: pa.DataType,
    incoming: pa.DataType,
    place: str,
    *,
    wider: Wider = AS_IT_IS,
    adds: bool = False,
) -> pa.DataType:
    """The type of a column of a table when rows come in another one, refused if none can be.

    It becomes wider only as far as `wider` says, and structs take fields on only if it `adds` them.
    Otherwise it stays, and each value has to have a place in it.
    """
    if current == incoming or types.is_null(incoming):
        return current
    if types.is_struct(current) and types.is_struct(incoming):
        return _widened_struct(current, incoming, place, wider, adds=adds)
    if types.is_list(current) and types.is_list(incoming):
        inner = widened(
            current.value_type, incoming.value_type, f"{place}[]", wider=wider, adds=adds
        )
        return current if inner == current.value_type else pa.list_(pa.field(LIST_ITEM, inner))
    if types.is_map(current) and types.is_map(incoming):
        inner = widened(current.item_type, incoming.item_type, place, wider=wider, adds=adds)
        if inner == current.item_type:
            return current
        return pa.map_(pa.string(), pa.field(MAP_VALUE, inner))
    if incoming in wider.get(current, ()):
        return incoming
    if _may_hold(current, incoming):
        return current
    raise InvalidRequest(
        "incompatible_type",
        what=f"Column {place} is {current} in the table, and {incoming} in the rows.",
        why=(
            "Lakewarden casts only without loss: numbers to numbers, times to times, never "
            "text to another type."
        ),
        now="Cast the column of the rows.",
        column=place,
        table_type=str(current),
        row_type=str(incoming),
    )


def unknown_columns(names: Sequence[str], known: Sequence[str]) -> InvalidRequest:
    """The refusal of rows with columns that the table does not have."""
    return InvalidRequest(
        "unknown_columns",
        what=f"The table has no {'column' if len(names) == 1 else 'columns'}"
        f" {', '.join(names[:20])}.",
        why=f"A write adds columns only with evolve=True. The table has {', '.join(known[:50])}.",
        now="Leave them out, or pass evolve=True to add them.",
        columns=tuple(names),
    )


def _struct(type_: pa.StructType, place: str) -> pa.DataType:
    if not type_.num_fields:
        raise _unsupported(type_, place, "a struct without fields holds nothing")
    return pa.struct(
        [pa.field(field.name, table_type(field.type, f"{place}.{field.name}")) for field in type_]
    )


def _leaf(type_: pa.DataType, place: str) -> pa.DataType:
    if any(matches(type_) for matches in _TEXTS):
        return pa.string()
    if any(matches(type_) for matches in _BINARIES):
        return pa.binary()
    if type_ in _INTS:
        return pa.int32()
    if type_ in _LONGS:
        return pa.int64()
    if type_ in (pa.float16(), pa.float32()):
        return pa.float32()
    if types.is_date(type_):
        return pa.date32()
    if types.is_timestamp(type_):
        return pa.timestamp("us", None if type_.tz is None else "UTC")
    if types.is_decimal(type_):
        if type_.precision > _PRECISION_MAX or type_.scale < 0:
            raise _unsupported(type_, place, f"Spark has decimals of up to {_PRECISION_MAX} digits")
        return pa.decimal128(type_.precision, type_.scale)
    if types.is_boolean(type_) or types.is_float64(type_):
        return type_
    if types.is_null(type_):
        raise _unsupported(type_, place, "a column with only nulls has no type yet")
    raise _unsupported(type_, place, "Avro and Spark have no such type")


def _widened_struct(
    current: pa.StructType, incoming: pa.StructType, place: str, wider: Wider, *, adds: bool
) -> pa.DataType:
    fields = []
    arriving = {field.name: field.type for field in incoming}
    for field in current:
        type_ = arriving.pop(field.name, field.type)
        inner = widened(field.type, type_, f"{place}.{field.name}", wider=wider, adds=adds)
        fields.append(field if inner == field.type else field.with_type(inner))
    if arriving and not adds:
        known = [f"{place}.{field.name}" for field in current]
        raise unknown_columns([f"{place}.{name}" for name in arriving], known)
    fields += [pa.field(name, type_) for name, type_ in arriving.items()]
    return pa.struct(fields)


def _may_hold(current: pa.DataType, incoming: pa.DataType) -> bool:
    """Whether the column's type has a place for each value, or tells which has none."""
    if types.is_integer(current):
        return _is_number(incoming)
    if types.is_floating(current):
        return _is_number(incoming) and not types.is_decimal(incoming)
    if types.is_decimal(current):
        return _is_number(incoming) and not types.is_floating(incoming)
    if types.is_timestamp(current) and types.is_timestamp(incoming):
        return (current.tz is None) == (incoming.tz is None)
    return bool(types.is_fixed_size_binary(current) and types.is_binary(incoming))


def _is_number(type_: pa.DataType) -> bool:
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _unsupported(type_: pa.DataType, place: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_column_type",
        what=f"Lakewarden cannot write column {place} of type {type_}.",
        why=f"{why[0].upper()}{why[1:]}.",
        now="Cast the column to a supported type.",
        column=place,
        type=str(type_),
    )


def column_at(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """A column by its name; `outer.inner` leads into a struct where no column is called so."""
    if name in rows.column_names:
        return rows.column(name)
    outer, *inner = name.split(".")
    if outer not in rows.column_names or not inner:
        raise _no_column(rows, name)
    column = rows.column(outer)
    try:
        return pc.struct_field(column, inner)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError):
        raise _no_column(rows, name) from None


def _no_column(rows: pa.Table, name: str) -> InvalidRequest:
    return InvalidRequest(
        "missing_key_column",
        what=f"The rows have no column {name!r}.",
        why="The table builds its record keys and partition paths from it.",
        now=f"Add it; the rows have {', '.join(rows.column_names[:20]) or 'no columns'}.",
        column=name,
    )
