"""Tables that SQL statements make, in the session of all tests of SQL."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import lakewarden
from tests.sql_ext.conftest import Run

COLUMNS = "id INT, name STRING, qty BIGINT, city STRING"
ROWS = "(1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Rome'), (3, 'c', 30, 'Oslo')"
NAMES = ("id", "name", "qty", "city")
Row = tuple[object, ...]
Make = Callable[..., str]

_numbers = count(1)


@pytest.fixture
def make(run: Run, tmp_path: Path) -> Iterator[Make]:
    """`make(type=..., partitioned=...)`: the name of a table with three rows."""
    made = []

    def table(
        type: str = "cow", *, partitioned: bool = True, properties: str = "", rows: str = ROWS
    ) -> str:
        name = f"t{next(_numbers)}"
        by = "PARTITIONED BY (city)" if partitioned else ""
        more = f", {properties}" if properties else ""
        run(
            f"CREATE TABLE {name} ({COLUMNS}) USING lakewarden {by} LOCATION '{tmp_path / name}'"
            f" TBLPROPERTIES (primaryKey = 'id', type = '{type}'{more})"
        )
        made.append(name)
        if rows:
            run(f"INSERT INTO {name} VALUES {rows}")
        return name

    yield table
    for name in made:
        run(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[str], list[Row]]:
    """`stored(name)`: what the engine's own reader finds in a table, by id."""

    def rows(name: str) -> list[Row]:
        found = lakewarden.Table(str(tmp_path / name)).read_arrow(columns=NAMES)
        return sorted(tuple(row[column] for column in NAMES) for row in found.to_pylist())

    return rows
