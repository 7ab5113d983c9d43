"""Stories: the files of sql_examples, taken apart into statements and what each is to give.

Below a statement stands its answer: `--| column | column |`, a line for each row, `*` for what is
another one each time, `--| (no rows)` for none; or `--! CONDITION` where it is to be refused.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from lakewarden.sql_ext.statements import split_statements

_ROW, _ERROR = "--|", "--!"
_NO_ROWS = "(no rows)"


@dataclass(frozen=True, slots=True)
class Grid:
    """An answer as text: columns, and rows of cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def matches(self, found: "Grid") -> bool:
        """Whether an answer is as expected; what is expected may say that anything will do."""
        return (
            self.columns == found.columns
            and len(self.rows) == len(found.rows)
            and all(map(_row_matches, self.rows, found.rows))
        )

    def __str__(self) -> str:
        lines = [self.columns, *self.rows]
        return "\n".join(f"{_ROW} {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and what it is to give, as far as the story says."""

    statement: str
    line: int
    answer: Grid | None = None
    is_empty: bool = False
    refusal: str | None = None


def steps_of(path: Path) -> list[Step]:
    """The statements of a story in their order."""
    text = path.read_text(encoding="utf-8")
    statements = list(split_statements(text))
    ends = [*(one.start for one in statements[1:]), len(text)]
    return [
        _step(one.text, text.count("\n", 0, one.start) + 1, text[one.end : end])
        for one, end in zip(statements, ends, strict=True)
    ]


def _step(statement: str, line: int, behind: str) -> Step:
    notes = [note.strip() for note in behind.splitlines()]
    rows = [note.removeprefix(_ROW) for note in notes if note.startswith(_ROW)]
    refusals = [note.removeprefix(_ERROR).strip() for note in notes if note.startswith(_ERROR)]
    if refusals:
        return Step(statement, line, refusal=refusals[0])
    if [row.strip() for row in rows] == [_NO_ROWS]:
        return Step(statement, line, is_empty=True)
    if not rows:
        return Step(statement, line)
    columns, *found = map(_cells, rows)
    return Step(statement, line, answer=Grid(columns, tuple(found)))


def _cells(row: str) -> tuple[str, ...]:
    cells = row.removeprefix(" ").rstrip().removesuffix(" |").split(" | ")
    return tuple(cell.strip() for cell in cells)


def _row_matches(expected: tuple[str, ...], found: tuple[str, ...]) -> bool:
    return len(expected) == len(found) and all(
        _cell_matches(want, have) for want, have in zip(expected, found, strict=True)
    )


def _cell_matches(expected: str, found: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.split("*")))
    return re.fullmatch(pattern, found) is not None
