"""An index by key is believed only where every write has told it."""

import pyarrow as pa

from lakewarden import Table
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
