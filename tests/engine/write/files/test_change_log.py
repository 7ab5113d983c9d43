"""Change logs: what a write logs of the rows that it changes, in each mode as Java does."""

import pyarrow as pa
import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.decimal128(6, 2)), ("ts", pa.int64())])
MODE = "hoodie.table.cdc.supplemental.logging.mode"


def table_with(storage: MemoryStorage, type_: str = "cow", **properties: object) -> Table:
    given = {"hoodie.table.cdc.enabled": "true", **properties}
    return Table.create(
        "", SCHEMA, key=["id"], ordering=["ts"], type=type_, properties=given, storage=storage
    )


def logged(storage: MemoryStorage) -> list[pa.Table]:
    """The blocks of all logs of change data, oldest first."""
    paths = sorted(one.path for one in storage.walk("") if one.path.endswith(".cdc"))
    blocks = [block for path in paths for block in read_blocks(storage.read(path), path)]
    assert all(block.kind is BlockKind.CDC for block in blocks)
    return [records(block) for block in blocks]


@pytest.mark.parametrize(
    ("mode", "columns"),
    [
        ("OP_KEY_ONLY", ["op", "record_key"]),
        ("DATA_BEFORE", ["op", "record_key", "before"]),
        ("DATA_BEFORE_AFTER", ["op", "ts_ms", "before", "after"]),
    ],
)
def test_a_rewritten_file_has_a_log_of_its_mode(mode: str, columns: list[str]) -> None:
    storage = fresh_memory_storage()
    table = table_with(storage, **{MODE: mode.lower()})
    assert table.properties[MODE] == mode
    table.upsert([{"id": "a", "v": 1, "ts": 1}, {"id": "b", "v": 2, "ts": 1}])
    assert logged(storage) == []
    written = table.upsert([{"id": "a", "v": 3, "ts": 2}, {"id": "c", "v": 4, "ts": 2}])
    (rows,) = logged(storage)
    assert rows.column_names == columns
    assert rows.column("op").to_pylist() == ["u", "i"]
    active = table.timeline()
    (newest,) = active.completed()[-1:]
    (stat,) = commit.decode(active.read(newest), "").partition_to_write_stats[""]
    assert stat.cdc_stats == {path: storage.stat(path).size_bytes for path in stat.cdc_stats}
    if "before" in columns:
        before = rows.column("before").to_pylist()
        assert before[1] is None
        assert (before[0]["id"], str(before[0]["v"]), before[0]["ts"]) == ("a", "1.00", 1)
    if "ts_ms" in columns:
        assert set(rows.column("ts_ms").to_pylist()) == {written.instant}
        assert [row["id"] for row in rows.column("after").to_pylist()] == ["a", "c"]


def test_a_log_of_rows_names_the_files_below_it() -> None:
    storage = fresh_memory_storage()
    table = table_with(storage, "mor")
    for v in (1, 2, 3):
        table.upsert([{"id": "a", "v": v, "ts": v}])
    active = table.timeline()
    first, *later = (
        commit.decode(active.read(one), "").partition_to_write_stats[""][0]
        for one in active.completed()
    )
    names = [one.path for one in later]
    assert [one.log_files for one in later] == [tuple(names[:1]), tuple(names)]
    assert {one.base_file for one in later} == {first.path}


def test_a_write_that_changes_no_row_has_an_empty_log() -> None:
    storage = fresh_memory_storage()
    table = table_with(storage)
    table.upsert([{"id": "a", "v": 1, "ts": 5}])
    table.upsert([{"id": "a", "v": 2, "ts": 4}])
    assert [len(one) for one in logged(storage)] == [0]
    assert len(table.changes_arrow("0", mode="cdc")) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("hoodie.table.cdc.enabled", "false"), (MODE, "OP_KEY_ONLY")]
)
def test_a_write_that_wants_other_logs_than_the_table_is_refused(name: str, value: str) -> None:
    table = table_with(fresh_memory_storage())
    rows = [{"id": "a", "v": 1, "ts": 1}]
    with pytest.raises(InvalidRequest) as refused:
        table.upsert(rows, {name: value})
    assert refused.value.code == "other_logging"
    table.upsert(rows, {"hoodie.table.cdc.enabled": "true", MODE: "data_before_after"})


def test_a_mode_that_is_none_is_refused_before_the_table_is_there() -> None:
    storage = fresh_memory_storage()
    with pytest.raises(InvalidRequest) as refused:
        table_with(storage, **{MODE: "everything"})
    assert refused.value.code == "bad_logging_mode"
    assert not list(storage.walk(""))
