"""A key that was deleted in a log and inserted anew is in two file groups, and still one row."""

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.crash.dying_operations import ports
from tests.histories.tables import SCHEMA

INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "BUCKET")


def row(v: int, key: str = "k") -> dict[str, object]:
    return {"id": key, "p": "a", "ts": v, "v": v, "name": None, "n": v, "d": None}


def written_twice(index: str) -> Table:
    """A table in which `k` was deleted in one file group and is in another one now."""
    clock = ManualClock()
    table = Table.create(
        "",
        SCHEMA,
        key=["id"],
        partition=["p"],
        type="mor",
        index=index,
        properties={"hoodie.parquet.small.file.limit": "0"},
        storage=fresh_memory_storage(clock=clock),
        ports=ports(clock, 1),
    )
    table.upsert([row(1), row(1, "other")])
    table.delete(["k"])
    table.insert([row(2)])
    return table


def rows_of(table: Table) -> list[tuple[object, object]]:
    read = table.read_arrow(["id", "v"]).to_pylist()
    return sorted((one["id"], one["v"]) for one in read)


@pytest.mark.parametrize("index", INDEXES)
def test_an_upsert_writes_a_key_once_that_was_deleted_and_inserted_anew(index: str) -> None:
    table = written_twice(index)
    commit = table.upsert([row(3)])
    assert rows_of(table) == [("k", 3), ("other", 1)]
    assert commit.rows_inserted + commit.rows_updated == 1


@pytest.mark.parametrize("index", INDEXES)
def test_a_key_that_was_deleted_in_two_file_groups_comes_back_once(index: str) -> None:
    table = written_twice(index)
    table.delete(["k"])
    table.upsert([row(4)])
    assert rows_of(table) == [("k", 4), ("other", 1)]


@pytest.mark.parametrize("index", INDEXES[:4])
def test_a_row_that_was_inserted_twice_is_updated_wherever_it_is(index: str) -> None:
    table = written_twice(index)
    table.insert([row(3)])
    table.upsert([row(4)])
    assert rows_of(table) == [("k", 4), ("k", 4), ("other", 1)]


def test_a_key_that_moves_leaves_all_of_its_partition() -> None:
    table = written_twice("GLOBAL_SIMPLE")
    table.upsert([{**row(5), "p": "b"}])
    assert rows_of(table) == [("k", 5), ("other", 1)]
