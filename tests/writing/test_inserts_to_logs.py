"""New rows in logs of small file groups, where the record index alone is asked for keys."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.write.routing.sizes import INSERTS_TO_LOGS

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
ON = {INSERTS_TO_LOGS.key: "true"}


@pytest.fixture
def table() -> Table:
    made = Table.create(
        "",
        SCHEMA,
        key=["id"],
        ordering=["ts"],
        type="mor",
        index="GLOBAL_RECORD_LEVEL_INDEX",
        storage=fresh_memory_storage(),
        properties=ON,
        ports=Ports(),
    )
    made.insert(rows("k0"))
    return made


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "ts": ts, "v": key} for key in keys], schema=SCHEMA)


def keys(table: Table) -> list[str]:
    return sorted(table.read_arrow(["id"])["id"].to_pylist())


def groups(table: Table) -> set[str]:
    return {slice_.file_id for slice_ in table.file_slices()}


def test_new_rows_begin_no_file_groups(table: Table) -> None:
    before = groups(table)
    for number in range(1, 6):
        commit = table.upsert(rows(f"k{number}", "k0", ts=number))
        assert (commit.rows_inserted, commit.rows_updated, commit.files) == (1, 1, 1)
    assert groups(table) == before
    assert keys(table) == [f"k{number}" for number in range(6)]
    assert table.lookup(["k3"]).num_rows == 1
    assert {one.verdict.value for one in table.validate()} <= {"ok", "skipped"}
    table.compaction.schedule_and_run()
    assert keys(table) == [f"k{number}" for number in range(6)]


def test_a_row_that_comes_after_a_delete_of_its_key_is_there_however_late(table: Table) -> None:
    table.upsert(rows("k1"))
    table.delete(rows("k1", ts=9))
    table.upsert(rows("k1", "k2", ts=5))
    assert keys(table) == ["k0", "k1", "k2"]
    assert len(groups(table)) == 2
    assert {one.verdict.value for one in table.validate()} <= {"ok", "skipped"}


def test_a_pending_compaction_keeps_no_rows_from_logs(table: Table) -> None:
    table.upsert(rows("k1"))
    plan = table.compaction.schedule()
    table.upsert(rows("k2"))
    plan.run()
    table.upsert(rows("k3"))
    assert keys(table) == ["k0", "k1", "k2", "k3"]
    assert len(groups(table)) == 1
    assert {one.verdict.value for one in table.validate()} <= {"ok", "skipped"}


def test_file_groups_that_are_large_enough_take_no_more(table: Table) -> None:
    table.upsert(rows("k1"), small_file_limit=1)
    assert len(groups(table)) == 2


def test_a_plain_insert_asks_no_index_and_fills_no_log(table: Table) -> None:
    table.insert(rows("k0"))
    assert table.read_arrow(["id"])["id"].to_pylist() == ["k0", "k0"]


def test_otherwise_new_rows_get_base_files(table: Table) -> None:
    table.upsert(rows("k1"))
    table.upsert(rows("k2"), {INSERTS_TO_LOGS.key: "false"})
    assert len(groups(table)) == 2
