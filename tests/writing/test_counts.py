"""What an upsert counts: keys that existed are updated, wherever their rows go."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])


def created(type_: str, index: str) -> Table:
    return Table.create(
        "",
        SCHEMA,
        key=["id"],
        partition=["p"],
        type=type_,
        index=index,
        storage=fresh_memory_storage(),
    )


def row(id_: str, p: str, v: int) -> dict[str, object]:
    return {"id": id_, "p": p, "v": v}


def counts(table: Table, *rows: dict[str, object]) -> tuple[int, int, int]:
    done = table.upsert(list(rows))
    return done.rows_inserted, done.rows_updated, done.rows_deleted


@pytest.mark.parametrize("type_", ["cow", "mor"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"])
def test_a_key_that_moves_to_another_partition_existed(type_: str, index: str) -> None:
    table = created(type_, index)
    assert counts(table, row("k", "a", 1), row("j", "a", 1)) == (2, 0, 0)
    assert counts(table, row("k", "b", 2), row("j", "a", 2), row("n", "b", 2)) == (1, 2, 0)
    assert counts(table, row("k", "b", 3), row("j", "b", 3)) == (0, 2, 0)


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_key_that_leaves_one_of_two_places_is_one_update(type_: str) -> None:
    table = created(type_, "GLOBAL_SIMPLE")
    table.upsert([row("k", "a", 1)])
    table.insert([row("k", "b", 1)])
    assert counts(table, row("k", "b", 2)) == (0, 1, 0)
    assert table.read_arrow(["p", "v"]).to_pylist() == [{"p": "b", "v": 2}]
