"""Java's text of a value: what record keys and partition paths are made of.

Numbers, booleans, decimals and dates are spelled as their `toString` in Java; timestamps are
spelled as the number that the file stores, which is what upserts of every kind write. Floating
point numbers are refused, for releases of Java differ in their last digits.
"""

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest

Column: TypeAlias = pa.Array | pa.ChunkedArray


def java_texts(column: Column, name: str) -> Column:
    """The text of each value of the named column; null stays null."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false")
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.string())
    plain = (pa.types.is_integer, pa.types.is_large_string, pa.types.is_date32)
    if any(matches(kind) for matches in (*plain, pa.types.is_decimal)):
        # Arrow spells decimals as Java does, with their trailing zeros and exponents.
        return column.cast(pa.string())
    raise unsupported_key_type(kind, name)


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
