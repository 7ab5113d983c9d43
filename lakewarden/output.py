"""Output of the command line: the same rows as an aligned table or as JSON lines."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

Row = Mapping[str, object]
Rows = Sequence[Row]


def as_table(rows: Rows, columns: Sequence[str]) -> str:
    """Rows under a header, columns aligned, numbers to the right."""
    if not rows:
        return "(no rows)"
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [
        max(len(name), *(len(line[position]) for line in cells))
        for position, name in enumerate(columns)
    ]
    right = [
        all(isinstance(row.get(name), (int, float, type(None))) for row in rows)
        for name in columns
    ]
    header = _line(columns, widths, [False] * len(widths))
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([header, rule, *(_line(line, widths, right) for line in cells)])


def as_json(rows: Rows, columns: Sequence[str]) -> str:
    """One JSON object a line."""
    return "\n".join(
        json.dumps({name: row.get(name) for name in columns}, default=_plain, ensure_ascii=False)
        for row in rows
    )


FORMATS: Mapping[str, Callable[[Rows, Sequence[str]], str]] = {
    "table": as_table,
    "json": as_json,
}


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        # Control characters could move a terminal's cursor.
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return str(_plain(value)) if isinstance(value, (bytes, datetime, date)) else str(value)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return str(value)
