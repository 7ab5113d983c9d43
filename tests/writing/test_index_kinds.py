"""Whatever index finds the keys, a table is what a plain dictionary says it is."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.writing.model import ModelRow, Write, contents_of
from tests.writing.shapes import INDEXES as ALL_INDEXES
from tests.writing.shapes import Shape, carry_out

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
STEPS, KEYS = 6, 8
SHOWN = ("id", "_hoodie_partition_path", "ts", "v")

Row = dict[str, Any]


@dataclass(frozen=True)
class Index:
    """An index, and what it makes of rows whose keys are in another partition."""

    kind: str
    options: dict[str, str] = field(default_factory=dict)
    is_global: bool = False
    moves: bool = False
    built: tuple[str, ...] = ()

    def all_options(self) -> dict[str, str]:
        return {"hoodie.index.type": self.kind, **self.options}


STAYS = {"hoodie.simple.index.update.partition.path": "false"}
MOVES = {"hoodie.record.index.update.partition.path": "true"}
INDEXES = (
    Index("SIMPLE"),
    Index("BLOOM"),
    Index("BUCKET", {"hoodie.bucket.index.num.buckets": "3"}),
    Index("GLOBAL_SIMPLE", is_global=True, moves=True),
    Index("GLOBAL_SIMPLE", STAYS, is_global=True),
    Index("GLOBAL_BLOOM", is_global=True, moves=True),
    Index("RECORD_INDEX", is_global=True, built=("record_index",)),
    Index("RECORD_INDEX", MOVES, is_global=True, moves=True, built=("record_index",)),
)


class Model:
    """The rows of a table by key, or by key and partition, with the partition each is in."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: dict[object, Row] = {}
        # A key that comes back must not be older than it was: what the base file still has wins.
        self.oldest: dict[str, int] = {}

    def key(self, row: Row) -> object:
        return row["id"] if self._index.is_global else (row["id"], row["p"])

    def upsert(self, row: Row) -> None:
        old = self._rows.get(self.key(row))
        if old is not None and row["ts"] < old["ts"]:
            return
        home = row["p"] if old is None or self._index.moves else old["home"]
        self._rows[self.key(row)] = {**row, "home": home}

    def delete(self, row: Row) -> None:
        old = self._rows.pop(self.key(row), None)
        if old is not None:
            self.oldest[row["id"]] = max(self.oldest.get(row["id"], 0), old["ts"])

    def shown(self) -> list[tuple[Any, ...]]:
        return sorted((row["id"], row["home"], row["ts"], row["v"]) for row in self._rows.values())


def shown(table: Table) -> list[tuple[Any, ...]]:
    rows = table.read_arrow(columns=SHOWN).to_pylist()
    return sorted(
        (row["id"], row["_hoodie_partition_path"].removeprefix("p="), row["ts"], row["v"])
        for row in rows
    )


def some_rows(random: Random, model: Model) -> list[Row]:
    """Rows of distinct keys."""
    rows: dict[object, Row] = {}
    for _ in range(random.randint(1, KEYS)):
        key = f"k{random.randrange(KEYS)}"
        time = model.oldest.get(key, 0) + random.randint(0, 6)
        row = {"id": key, "p": random.choice("abc"), "ts": time, "v": random.randrange(1 << 30)}
        rows[model.key(row)] = row
    return list(rows.values())


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("index", INDEXES, ids=lambda one: f"{one.kind}, moves={one.moves}")
def test_upserts_and_deletes_leave_what_they_should(
    index: Index, table_type: str, memory_path: str
) -> None:
    random, model = Random(f"{index.kind}{index.moves}{table_type}"), Model(index)
    table = Table.create(
        memory_path,
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=table_type,
        indexes=index.built,
    )
    for _ in range(STEPS):
        rows = some_rows(random, model)
        incoming = pa.Table.from_pylist(rows, schema=SCHEMA)
        if random.random() < 0.3:
            table.delete(incoming, index.all_options())
            change = model.delete
        else:
            table.upsert(incoming, index.all_options())
            change = model.upsert
        for row in rows:
            change(row)
        assert shown(table) == model.shown()


@pytest.mark.parametrize("first", [(), ({"id": "a", "p": "x", "ts": 1, "v": 2.0, "name": "n"},)])
@pytest.mark.parametrize("index", ALL_INDEXES)
def test_a_table_without_rows_takes_an_upsert(index: str, first: tuple[ModelRow, ...]) -> None:
    shape = Shape("mor", index=index)
    table = shape.create("", storage=fresh_memory_storage())
    last: ModelRow = {"id": "a", "p": "x", "ts": 2, "v": 3.0, "name": "n"}
    for rows in (first, (last,)):
        carry_out(table, Write("upsert", rows))
    assert contents_of(table.read_arrow()) == [last]
