"""What values look like to people: aligned lines in a terminal, a table in a notebook.

The same rows become columns for Arrow and pandas. Numbers that have a unit in their name are shown
in one that people read; programs get them as they are.
"""

import base64
import html
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import islice
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = Mapping[str, object]
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Item = TypeVar("Item", covariant=True)

# So many rows decide how wide a table's columns are, so that long tables need not be held.
PAGE_ROWS = 1000
# What a value shows of itself; the rest is counted.
SHOWN_ROWS = 20
SHOWN_WIDTH = 60
# The same of a value that has lines of its own.
SHOWN_ITEMS = 5
TEXT_WIDTH, TEXT_LINES = 80, 4
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_THOUSAND = 1000
_NOTHING: tuple[object, ...] = (None, (), "", {})


class Shown:
    """A value that shows its fields, one on a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        row = {name: value for name, value in row_of(self).items() if value not in _NOTHING}
        width = max(map(len, row), default=0)
        lines = [type(self).__name__]
        for name, one in row.items():
            first, *rest = _shown_lines(for_people(name, one))
            lines.append(f"  {name:<{width}}  {first}")
            lines += (f"  {'':<{width}}  {line}" for line in rest)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        row = row_of(self)
        return _html(
            ("", type(self).__name__), ((name, for_people(name, row[name])) for name in row)
        )


class ShownRows(ABC):
    """A value that is rows: it shows them as a table, and becomes one."""

    __slots__ = ()

    @abstractmethod
    def _shown_rows(self) -> Sequence[Row]:
        """The rows, all with the same columns."""

    def __repr__(self) -> str:
        rows = self._shown_rows()
        names = [name for name in (rows[0] if rows else ()) if _is_told(name, rows)]
        left_out = max(len(rows) - SHOWN_ROWS, 0)
        begin = SHOWN_ROWS // 2 if left_out else SHOWN_ROWS
        chosen = [*rows[:begin], *rows[begin + left_out :]]
        told = map(row_for_people, chosen)
        short = ({name: _short(row[name]) for name in names} for row in told)
        lines = list(aligned(names, short))
        if left_out:
            lines.insert(begin + 2, f"... {left_out} more ...")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = self._shown_rows()
        names = tuple(rows[0]) if rows else ("(no rows)",)
        told = map(row_for_people, rows)
        return _html(names, ([row[name] for name in names] for row in told))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return pa.Table.from_pylist(
            [{name: _for_arrow(one) for name, one in row.items()} for row in self._shown_rows()]
        )

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a data frame."""
        return self.to_arrow().to_pandas()


class Listed(ShownRows, tuple[Item, ...]):
    """Values of one kind: a tuple that shows itself as a table, and becomes one."""

    __slots__ = ()

    def _shown_rows(self) -> Sequence[Row]:
        return [row_of(one) for one in self]


def row_of(value: object) -> Row:
    """What a value shows: the attributes that it names, or else its fields."""
    if isinstance(value, Mapping):
        return value
    named = getattr(value, "SHOWN", None)
    if named is None and is_dataclass(value):
        named = tuple(field.name for field in fields(value) if field.repr)
    return {name: _cell(getattr(value, name)) for name in named or ()}


def for_people(name: str, value: object) -> object:
    """A number in a unit that people read, by the name of its column."""
    if name == "seconds" and isinstance(value, Mapping):
        return duration_text(sum(value.values()))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not math.isfinite(value):
        return value
    if name == "bytes" or name.endswith("_bytes"):
        return size_text(value)
    if name.endswith("_at_ms"):
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if name.endswith("_ratio"):
        return f"{value * 100:.0f} %"
    return duration_text(value) if name.endswith("_seconds") else value


def row_for_people(row: Row) -> Row:
    """A row in units that people read; what is not known is left empty.

    >>> row_for_people({"metric": "table_size", "value": 38919.0, "unit": "bytes"})
    {'metric': 'table_size', 'value': '38.9 KB', 'unit': ''}
    """
    told = {name: for_people(name, one) for name, one in row.items()}
    show = _BY_UNIT.get(str(row.get("unit")))
    for name in _FIGURES & told.keys():
        figure = told[name]
        if isinstance(figure, int | float) and math.isfinite(figure):
            told[name] = show(figure) if show else int(figure) if figure == int(figure) else figure
    if show is not None:
        told["unit"] = ""
    return {name: "" if one is None else one for name, one in told.items()}


def size_text(size_bytes: float) -> str:
    """A size with three digits.

    >>> size_text(950), size_text(1_234_567)
    ('950 B', '1.23 MB')
    """
    for unit in _UNITS:
        if abs(size_bytes) < _THOUSAND or unit == _UNITS[-1]:
            break
        size_bytes /= _THOUSAND
    return f"{size_bytes:.3g} {unit}" if abs(size_bytes) < _THOUSAND else f"{size_bytes:.0f} {unit}"


def duration_text(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration_text(0.25), duration_text(75), duration_text(7320), duration_text(3600)
    ('0.25 s', '1 min 15 s', '2 h 2 min', '1 h')
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    for size, unit, next_size, smaller in _DURATIONS:
        if seconds >= size:
            rest = int(seconds % size // next_size)
            return f"{seconds // size:.0f} {unit}{f' {rest} {smaller}' if rest else ''}"
    return f"{seconds:.0f} s"


# Rows whose unit stands in a column of its own.
_FIGURES = frozenset({"value", "threshold"})
_BY_UNIT = {"bytes": size_text, "seconds": duration_text}
_DURATIONS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def aligned(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """The lines of a table under a header, numbers to the right."""
    rows = iter(rows)
    page = list(islice(rows, PAGE_ROWS))
    if not page:
        yield "(no rows)"
        return
    cells = [_cells(row, columns) for row in page]
    lines = [[_printable(name) for name in columns], *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_right = [_holds_numbers(row.get(name) for row in page) for name in columns]
    yield _line(lines[0], widths, [False] * len(widths))
    yield "  ".join("-" * width for width in widths)
    for line in cells:
        yield _line(line, widths, is_right)
    for row in rows:
        yield _line(_cells(row, columns), widths, is_right)


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
    return key if isinstance(key, str) else text_of(plain(key))


def _not_finite(value: float) -> str:
    # JSON has no such numbers; Spark spells them so, too.
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else json_text(value)


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    return [_printable(text_of(plain(row.get(name)))) for name in columns]


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


def _cell(value: object) -> object:
    """A value as it stands in a row: files by their names, other values of ours as text."""
    match value:
        case Enum():
            return value.value if isinstance(value.value, str) else value.name.lower()
        case tuple() | list() | frozenset():
            return tuple(
                map(_cell, sorted(value, key=str) if isinstance(value, frozenset) else value)
            )
        case Mapping():
            return {str(name): _cell(one) for name, one in value.items()}
        case _ if is_dataclass(value):
            return getattr(value, "name", None) or _words(value)
    return value


def _words(value: object) -> str:
    """Another value of ours within one: in its own words, or its fields."""
    if type(value).__str__ is not object.__str__:
        return str(value)
    told = {name: one for name, one in row_of(value).items() if one not in _NOTHING}
    return ", ".join(f"{name} {text_of(plain(one))}" for name, one in told.items())


def _for_arrow(value: object) -> object:
    match value:
        case tuple():
            return [text_of(plain(one)) for one in value]
        case Mapping():
            return json_text(plain(value))
    return value


def _is_told(name: str, rows: Sequence[Row]) -> bool:
    """Whether any row has something in a column; a row of figures needs no empty ones."""
    return any(row[name] not in _NOTHING for row in rows)


def _shown_lines(value: object) -> list[str]:
    """A value of some length: texts are wrapped, and of many values the first ones are shown."""
    if isinstance(value, tuple):
        texts = [_printable(text_of(plain(one))) for one in value]
        if sum(map(len, texts)) <= SHOWN_WIDTH:
            return [", ".join(texts)]
        more = len(texts) - SHOWN_ITEMS
        counted = [f"... {more} more ..."] if more > 0 else []
        return [*(line for text in texts[:SHOWN_ITEMS] for line in _wrapped(text)), *counted]
    return _wrapped(value) if isinstance(value, str) else [str(_short(value))]


def _wrapped(text: str) -> list[str]:
    return wrap(_printable(text), TEXT_WIDTH, max_lines=TEXT_LINES, placeholder=" ...") or [""]


def _short(value: object) -> object:
    """A value in a cell of limited width."""
    match value:
        case None:
            return ""
        case float():
            return float(f"{value:.4g}")
        case bool() | int():
            return value
    text = _printable(text_of(plain(value)))
    is_short = len(text) <= SHOWN_WIDTH
    return text if is_short else f"{text[: SHOWN_WIDTH - 3]}..."


def _html(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(value: object) -> str:
    text = "" if value is None else text_of(plain(value))
    return f"<td>{html.escape(text)}</td>"
