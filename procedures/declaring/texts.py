"""Texts: lists that arguments hold, and values of any type as rows show them."""

from datetime import datetime

import pyarrow as pa


def listed(text: str | None) -> tuple[str, ...]:
    """The items of a list that is separated by commas; none without a text."""
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def value_text(value: pa.Scalar | None) -> str | None:
    """A value of a column as text; bytes in hexadecimal digits, times as ISO 8601 has them."""
    plain = None if value is None else value.as_py()
    match plain:
        case None:
            return None
        case bool():
            return str(plain).lower()
        case bytes():
            return plain.hex()
        case datetime():
            return plain.isoformat()
    return str(plain)
