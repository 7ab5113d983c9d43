"""Java's text of a value: what record keys and partition paths are made of.

Numbers, booleans, decimals and dates are spelled as their `toString` in Java; timestamps are
spelled as the number that the file stores, which is what upserts of every kind write. Of floating
point numbers those are refused in whose last digits releases of Java differ.
"""

import math
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.widening import java_number
from lakewarden.engine.kernel.errors import InvalidRequest

Column: TypeAlias = pa.Array | pa.ChunkedArray

# From here on, and below these, Java before release 19 writes more digits than a number needs.
_FLOAT_ENDS = (1e-9, 1e7)
_DOUBLE_ENDS = (1e-19, 1e15)


def java_texts(column: Column, name: str) -> Column:
    """The text of each value of the named column; null stays null."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false")
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _floating_texts(column, name)
    plain = (pa.types.is_integer, pa.types.is_large_string, pa.types.is_date32)
    if any(matches(kind) for matches in (*plain, pa.types.is_decimal)):
        # Arrow spells decimals as Java does, with their trailing zeros and exponents.
        return column.cast(pa.string())
    raise unsupported_key_type(kind, name)


def _floating_texts(column: Column, name: str) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    single = pa.types.is_float32(column.type)
    texts = [_floating_text(value.as_py(), name, single=single) for value in encoded.dictionary]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _floating_text(value: float, name: str, *, single: bool) -> str:
    least, end = _FLOAT_ENDS if single else _DOUBLE_ENDS
    if value and math.isfinite(value) and not least <= abs(value) < end:
        raise _differing_text(value, name)
    return java_number(np.float32(value) if single else np.float64(value))


def _differing_text(value: float, name: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_key_value",
        what=f"The value {value!r} of column {name!r} cannot be part of a key or partition path.",
        why="Releases of Java spell numbers of this size differently, so a key could appear twice.",
        now="Nothing was written. Make the column a decimal or a text.",
        column=name,
        value=repr(value),
    )


def unsupported_key_type(kind: pa.DataType, name: str) -> InvalidRequest:
    """The error for a column whose values have no text that everybody agrees on."""
    return InvalidRequest(
        "unsupported_key_type",
        what=f"Column {name!r} of type {kind} cannot be part of a key or partition path.",
        why="Engines and releases spell such values differently, so a key could appear twice.",
        now="Cast the column to text, to a whole number, a decimal or a date.",
        column=name,
        type=str(kind),
    )
