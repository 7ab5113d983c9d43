"""Output: the same rows as a table with aligned columns, as JSON lines, or as CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.kernel.shown import Row, aligned, json_text, plain, row_for_people, text_of


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows of Python values, and which of their columns are shown in which order.

    Figures about a table have units for people; a user's own rows are shown as they are.
    """

    columns: Sequence[str]
    rows: Iterable[Row]
    has_units: bool = False


def as_table(answer: ResultTable) -> Iterator[str]:
    """The lines of a table under a header."""
    return aligned(
        answer.columns, map(row_for_people, answer.rows) if answer.has_units else answer.rows
    )


def as_json(answer: ResultTable) -> Iterator[str]:
    """One JSON object a line."""
    for row in answer.rows:
        yield json_text({name: plain(row.get(name)) for name in answer.columns})


def as_csv(answer: ResultTable) -> Iterator[str]:
    """A line of names, then one for each row; null is empty, lists and objects are JSON."""
    yield _csv_line(answer.columns)
    for row in answer.rows:
        cells = (plain(row.get(name)) for name in answer.columns)
        yield _csv_line(["" if cell is None else text_of(cell) for cell in cells])


FORMATS: Mapping[str, Callable[[ResultTable], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_csv,
}


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()
