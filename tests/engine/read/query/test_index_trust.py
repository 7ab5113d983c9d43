"""An index by key is believed only where every write has told it."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import restore, rollback
from lakewarden.engine.read.query.index_trust import IndexTrust
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
RECORD_INDEX = "record_index"


def indexed_table() -> tuple[Storage, Table]:
    """Two rows, of which the second came after the index was built."""
    storage = fresh_memory_storage()
    table = Table.create("", SCHEMA, key=["id"], storage=storage)
    table.upsert(pa.table({"id": ["a"], "v": [1]}, SCHEMA))
    table.build_index(RECORD_INDEX, ["id"], index_type=RECORD_INDEX)
    table.upsert(pa.table({"id": ["b"], "v": [2]}, SCHEMA))
    return storage, table


def doubt(storage: Storage, partition: str = RECORD_INDEX) -> str | None:
    return IndexTrust(load_snapshot(storage)).doubt(partition)


def test_an_index_that_all_writes_have_told_is_believed() -> None:
    storage, _ = indexed_table()
    assert doubt(storage) is None


def test_an_index_that_is_not_there_is_not_asked() -> None:
    storage, _ = indexed_table()
    assert doubt(storage, "secondary_index_by_v") == "it is not built"


def test_an_index_that_a_write_has_not_told_is_not_believed() -> None:
    storage, table = indexed_table()
    newest = table.timeline().completed()[-1].requested
    for entry in storage.walk(".hoodie/metadata"):
        if newest in entry.name:
            storage.delete(entry.path)
    assert doubt(storage) == f"the write {newest} has not updated the metadata table"


def taken_back(storage: Storage, table: Table, write: str, action: str) -> str:
    """A rollback or restore of another engine, which has no ledger, and forgets this index."""
    newest = max(one.completed or "" for one in table.timeline().completed())
    time = str(int(newest) + 1000)
    metadata = rollback.RollbackMetadata(start_rollback_time=time, commits_rollback=(write,))
    content = (
        rollback.encode(metadata)
        if action == "rollback"
        else restore.encode(restore.RestoreMetadata(start_restore_time=time))
    )
    storage.put(f".hoodie/timeline/{time}_{int(time) + 1}.{action}", content)
    return time


def test_an_index_is_not_believed_once_another_engine_took_back_what_it_was_built_on() -> None:
    storage, table = indexed_table()
    time = taken_back(storage, table, table.timeline().completed()[0].requested, "rollback")
    assert doubt(storage) == f"the rollback {time} has not updated it"


def test_an_index_is_believed_when_another_engine_took_back_what_came_later() -> None:
    storage, table = indexed_table()
    taken_back(storage, table, table.timeline().completed()[-1].requested, "rollback")
    assert doubt(storage) is None


def test_an_index_is_not_believed_once_another_engine_restored_the_table() -> None:
    storage, table = indexed_table()
    time = taken_back(storage, table, table.timeline().completed()[0].requested, "restore")
    assert doubt(storage) == f"the restore {time} has not updated it"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_an_expression_of_another_zone_excludes_nothing(zone: str) -> None:
    """The filter is of hours of UTC."""
    storage = fresh_memory_storage()
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    kept = {"lakewarden.index.expression.timezone": zone}
    table = Table.create("", schema, key=["id"], storage=storage, properties=kept)
    table.upsert(pa.table({"id": ["a"], "at": [0]}, schema))
    table.create_index("by_hour", ["at"], index_type="column_stats", options={"expr": "hour"})
    query = {"filter": "hour(at) = 0"}
    assert table.read_arrow(["id"], **query).num_rows == 1
    (use,) = (one for one in table.explain(**query).indexes if one.index == "by_hour")
    assert (use.reason is None) is (zone != "Asia/Tokyo")
