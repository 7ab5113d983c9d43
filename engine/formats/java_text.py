"""Java's text of values: what `toString` makes of what its Avro and Spark readers give.

Dates are days since the epoch, timestamps numbers in their own unit. Types whose text depends on
how Java came by the value have none here.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Between these magnitudes Java writes floating point numbers without an exponent.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def has_java_text(type_: pa.DataType) -> bool:
    """Whether it is certain how Java spells values of a type."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_float32(type_)
        or pa.types.is_float64(type_)
    )


def java_text(values: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """The texts of values; null stays null."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(column.type):
        return _of_distinct(column)
    return column.cast(pa.string())


def _of_distinct(column: pa.Array) -> pa.StringArray:
    encoded = pc.dictionary_encode(column)
    is_single = pa.types.is_float32(column.type)
    texts = [_floating(value, is_single=is_single) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _floating(value: float, *, is_single: bool) -> str:
    if value != value:
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    number = np.float32(value) if is_single else np.float64(value)
    size = abs(float(number))
    if size == 0 or _PLAIN_FROM <= size < _PLAIN_BELOW:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"
