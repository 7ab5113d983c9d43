"""Row images: rows as the JSON texts that change data shows, before and after a change.

Dates, times and timestamps are numbers in the unit that the table stores, as in Hudi. Decimals are
texts, so that none loses a digit, and bytes are Base64.
"""

import base64
import json
import math
from collections.abc import Callable, Sequence

import pyarrow as pa

Plain = Callable[[object], object]


def row_images(rows: pa.Table) -> pa.StringArray:
    """Each row as one JSON object, its columns in their order."""
    names = rows.column_names
    columns = [_plain_values(rows.column(name)) for name in names]
    if not columns:
        return pa.array(["{}"] * len(rows), pa.string())
    texts = [
        json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)
        for values in zip(*columns, strict=True)
    ]
    return pa.array(texts, pa.string())


def _plain_values(column: pa.ChunkedArray) -> Sequence[object]:
    """The values of a column as JSON has them."""
    plain = _plain(column.type)
    values = _as_numbers(column).to_pylist()
    return values if plain is None else [None if one is None else plain(one) for one in values]


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    numbers = _numbers_type(column.type)
    if numbers == column.type:
        return column
    # Nested types cast only where all of their parts do; a view of the same bytes always fits.
    chunks = [_viewed(chunk, numbers) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=numbers)


def _numbers_type(kind: pa.DataType) -> pa.DataType:
    """A type with numbers in the place of dates and times, at any depth."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_date64(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_numbers_type(one.type)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_numbers_type(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers_type(kind.value_type)))
    return kind


def _viewed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.view(kind)


def _plain(kind: pa.DataType) -> Plain | None:
    """How a value that is no null becomes one of JSON's; None where it is one as it stands."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_floating(kind):
        return _plain_float
    if pa.types.is_decimal(kind):
        return str
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _plain_bytes
    if pa.types.is_struct(kind):
        return _of_struct({one.name: _plain(one.type) for one in kind})
    if pa.types.is_map(kind):
        return _of_map(_plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_list(_plain(kind.value_type))
    return None


def _plain_float(value: object) -> object:
    assert isinstance(value, float)
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain_bytes(value: object) -> object:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode("ascii")


def _of_struct(parts: dict[str, Plain | None]) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, dict)
        return {name: _made(part, value[name]) for name, part in parts.items()}

    return plain


def _of_map(part: Plain | None) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, list)
        return {str(key): _made(part, item) for key, item in value}

    return plain


def _of_list(part: Plain | None) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, list)
        return [_made(part, item) for item in value]

    return plain


def _made(part: Plain | None, value: object) -> object:
    return value if part is None or value is None else part(value)
