"""The bytes of values of any Avro type: leaves are written as such, nested types around them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.arrow_types import branch_names, is_list
from lakewarden.engine.formats.avro.fitting import misfit
from lakewarden.engine.formats.avro.pieces import (
    Cells,
    Piece,
    binary,
    ends_of,
    joined,
    offsets_of,
    spread,
    varints,
)
from lakewarden.engine.formats.avro.types import (
    NULL,
    STRING,
    ArrayType,
    AvroType,
    MapType,
    RecordType,
    UnionType,
)
from lakewarden.engine.formats.avro.window import Integers, Mask
from lakewarden.engine.formats.avro.write_leaves import (
    Codes,
    unexpected_null,
    valid_rows,
    write_leaf,
)
from lakewarden.engine.kernel.errors import InvalidRequest


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
