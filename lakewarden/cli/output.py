"""Output: the same rows as a table with aligned columns, as JSON lines, or as CSV."""

import base64
import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import TypeAlias

Row = Mapping[str, object]
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

# So many rows decide how wide a table's columns are, so that long tables need not be held.
PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows of Python values, and which of their columns are shown in which order."""

    columns: Sequence[str]
    rows: Iterable[Row]


def as_table(answer: ResultTable) -> Iterator[str]:
    """The lines of a table under a header, numbers to the right."""
    rows = iter(answer.rows)
    page = list(islice(rows, PAGE_ROWS))
    if not page:
        yield "(no rows)"
        return
    cells = [_cells(row, answer.columns) for row in page]
    lines = [[_printable(name) for name in answer.columns], *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_right = [_holds_numbers(row.get(name) for row in page) for name in answer.columns]
    yield _line(lines[0], widths, [False] * len(widths))
    yield "  ".join("-" * width for width in widths)
    for line in cells:
        yield _line(line, widths, is_right)
    for row in rows:
        yield _line(_cells(row, answer.columns), widths, is_right)


def as_json(answer: ResultTable) -> Iterator[str]:
    """One JSON object a line."""
    for row in answer.rows:
        yield _json_text({name: plain(row.get(name)) for name in answer.columns})


def as_csv(answer: ResultTable) -> Iterator[str]:
    """A line of names, then one for each row; null is empty, lists and objects are JSON."""
    yield _csv_line(answer.columns)
    for row in answer.rows:
        cells = (plain(row.get(name)) for name in answer.columns)
        yield _csv_line(["" if cell is None else _text(cell) for cell in cells])


FORMATS: Mapping[str, Callable[[ResultTable], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv,
}


def plain(value: object) -> Json:
    """A value in JSON's types: bytes as base64, times in ISO form, decimals with all digits."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else _text(plain(key))


def _not_finite(value: float) -> str:
    # JSON has no such numbers; Spark spells them so, too.
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def _json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else _json_text(value)


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [_printable(_text(plain(row.get(name)))) for name in columns]


def _printable(text: str) -> str:
    # Control characters could move a terminal's cursor.
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _holds_numbers(values: Iterable[object]) -> bool:
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and kinds <= {int, float, Decimal}


def _line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_right, strict=True)
    )
    return "  ".join(padded).rstrip()
