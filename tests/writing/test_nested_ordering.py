"""Ordering fields inside of structs decide as columns do, in every way to a newer row."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage

OUTER = pa.struct([("key", pa.struct([("k", pa.string())])), ("ts", pa.int64())])
SCHEMA = pa.schema([("id", pa.int32()), ("a", OUTER), ("name", pa.string())])


def rows(*given: tuple[int, int, str]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": id_, "a": {"key": {"k": "x"}, "ts": ts}, "name": name} for id_, ts, name in given],
        SCHEMA,
    )


def names(table: Table) -> list[str]:
    return sorted(table.read_arrow(columns=["name"]).column("name").to_pylist())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_row_that_is_newest_inside_wins(kind: str) -> None:
    table = Table.create(
        "", SCHEMA, ["id", "a.key.k"], ordering=["a.ts"], type=kind, storage=fresh_memory_storage()
    )
    table.upsert(rows((1, 5, "first"), (1, 4, "older"), (2, 1, "other")))
    assert names(table) == ["first", "other"]
    assert "id:1,a.key.k:x" in table.read_arrow().column("_hoodie_record_key").to_pylist()
    table.upsert(rows((1, 4, "late")))
    assert names(table) == ["first", "other"]
    table.upsert(rows((1, 6, "newer")))
    table.merge(rows((2, 2, "merged"), (2, 1, "unmerged")))
    assert names(table) == ["merged", "newer"]
    if kind == "mor":
        table.log_compaction.schedule_and_run()
        table.compaction.schedule_and_run()
    table.upsert(rows((1, 5, "late")))
    assert names(table) == ["merged", "newer"]
    assert table.repair_deduplicate(dry_run=True).copies == ()


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"'a\.none'"):
        Table.create("", SCHEMA, ["id"], ordering=["a.none"], storage=fresh_memory_storage())
