"""Guests: clients of one server, all at work at once, who know what every answer has to be.

A guest has a table of its own, and rows in one that all of them write to. What the server has
acknowledged is remembered, and asked for again.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from lakewarden.table import Table
from tests.sql_examples.clients import Client, Refused

TOGETHER = "together"
_COLUMNS = "(id STRING, guest STRING, qty INT) USING lakewarden"
# Several writers of one table have to say so.
_MANY_WRITERS = "SET hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"

Rows = dict[str, int]


class Guest:
    """One who comes, does something by chance some times, and leaves again."""

    def __init__(self, number: int, folder: Path, seed: int) -> None:
        self.name = f"guest_{number}"
        self.statements = 0
        self.together: Rows = {}
        self._own: Rows = {}
        self._path = folder / self.name
        self._random = Random(f"{seed} {number}")
        self._client: Client | None = None
        self._acts = self._all_acts()

    def come(self, client: Client) -> None:
        """Begin a session."""
        self._client = client
        self._ask(_MANY_WRITERS)

    def settle(self) -> None:
        """Make the table of its own."""
        properties = f"LOCATION '{self._path}' TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
        self._ask(f"CREATE TABLE {self.name} {_COLUMNS} {properties}")

    def do_everything_once(self) -> None:
        for act in self._acts:
            act()

    def do_something(self) -> None:
        self._random.choice(self._acts)()

    def _all_acts(self) -> list[Callable[[], None]]:
        writes = [self._insert, self._update, self._insert_together]
        reads = [self._read_own, self._read_together, self._read_functions]
        calls = [self._show, self._list_indexes, self._err, self._preview]
        return [*writes, *reads, *calls, *calls, self._compact, self._cancel_a_plan]

    def _ask(self, statement: str) -> tuple[tuple[str, ...], ...]:
        assert self._client is not None
        self.statements += 1
        return self._client.ask(statement).rows

    def _insert(self) -> None:
        key, quantity = str(len(self._own)), self._random.randrange(1000)
        self._ask(f"INSERT INTO {self.name} VALUES ('{key}', '{self.name}', {quantity})")
        self._own[key] = quantity

    def _update(self) -> None:
        key = str(self._random.randrange(len(self._own)))
        self._ask(f"UPDATE {self.name} SET qty = qty + 1 WHERE id = '{key}'")
        self._own[key] += 1

    def _insert_together(self) -> None:
        key, quantity = f"{self.name} {len(self.together)}", self._random.randrange(1000)
        self._ask(f"INSERT INTO {TOGETHER} VALUES ('{key}', {quantity}, '{self.name}')")
        self.together[key] = quantity

    def _read_own(self) -> None:
        self._expect(f"SELECT id, qty FROM {self.name}", self._own)

    def _read_together(self) -> None:
        where = f"WHERE guest = '{self.name}'"
        self._expect(f"SELECT id, qty FROM {TOGETHER} {where}", self.together)

    def _expect(self, query: str, rows: Rows) -> None:
        found = {key: int(quantity) for key, quantity in self._ask(query)}
        assert found == rows, f"{self.name}: {query} gives {found} instead of {rows}"

    def _read_functions(self) -> None:
        query = f"SELECT action FROM lakewarden_timeline('{self._path}') WHERE state <> 'COMPLETED'"
        assert not self._ask(query)

    def _show(self) -> None:
        found = self._ask(f"CALL show_timeline(table => '{self.name}', limit => 3)")
        assert {row[2] for row in found} == {"COMPLETED"}

    def _list_indexes(self) -> None:
        assert self._ask(f"SHOW INDEXES FROM {self.name}") is not None

    def _preview(self) -> None:
        assert len(self._ask(f"CALL run_clean(table => '{self.name}', dry_run => true)")) == 1

    def _err(self) -> None:
        with pytest.raises(Refused, match="LAKEWARDEN_UNKNOWN_PROCEDURE"):
            self._ask("CALL no_such()")

    def _compact(self) -> None:
        (row,) = self._ask(f"CALL run_compaction(table => '{self.name}')")
        assert row[2] in ("COMPLETED", "NULL"), row

    def _cancel_a_plan(self) -> None:
        order = "op => 'schedule', cancellable => true"
        (planned,) = self._ask(f"CALL run_compaction(table => '{self.name}', {order})")
        if planned[0] == "NULL":
            return
        (gone,) = self._ask(f"CALL cancel_plan(table => '{self.name}', instant => {planned[0]})")
        assert gone[2] == "cancelled", gone

    def check_files(self) -> None:
        """Its table as whoever opens it sees it, without the server."""
        assert rows_of(self._path) == self._own
        assert not Table(str(self._path)).timeline().pending()


def rows_of(path: Path) -> Rows:
    """The rows that a table has, by their keys."""
    found = Table(str(path)).read_arrow(columns=["id", "qty"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["qty"] for row in found}


def make_common_table(client: Client, folder: Path) -> Path:
    """The table that all guests write to, each into a partition."""
    path = folder / TOGETHER
    properties = f"LOCATION '{path}' TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
    client.ask(f"CREATE TABLE {TOGETHER} {_COLUMNS} PARTITIONED BY (guest) {properties}")
    return path
