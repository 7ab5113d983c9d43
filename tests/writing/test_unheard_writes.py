"""A write that did not tell the metadata table is read all the same, and no write builds on it.

Some engine's writer may not know of the metadata table, or be set not to write it.
"""

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.table import Table
from tests.writing.shapes import Shape

OLD = {"id": "old", "p": "a", "ts": 1, "v": 1.0, "name": "n"}
NEW = {**OLD, "id": "new", "p": "b"}


def table_with_unheard_write(shape: Shape) -> tuple[MemoryStorage, str]:
    """Two writes; of the second one the metadata table knows nothing."""
    storage = fresh_memory_storage()
    table = shape.create("", storage=storage)
    table.upsert([OLD])
    write = table.upsert([NEW]).instant
    assert write is not None
    for entry in storage.walk(".hoodie/metadata"):
        if write in entry.name:
            storage.delete(entry.path)
    return storage, write


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX"])
def test_its_rows_are_read_and_found(kind: str, index: str) -> None:
    storage, _ = table_with_unheard_write(Shape(kind, index=index))
    table = Table.on(storage)
    assert sorted(table.read_arrow(["id"])["id"].to_pylist()) == ["new", "old"]
    assert table.read_arrow(["id"], [("id", "=", "new")])["id"].to_pylist() == ["new"]
    assert table.lookup(["new"])["id"].to_pylist() == ["new"]
    assert sorted(table.partitions()) == ["p=a", "p=b"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_writes_are_refused_until_the_metadata_table_is_made_anew(kind: str) -> None:
    storage, write = table_with_unheard_write(Shape(kind))
    table = Table.on(storage)
    assert "failed" in {one.finding.verdict for one in table.validate()}
    with pytest.raises(CorruptTable) as refused:
        table.upsert([{**NEW, "v": 2.0}])
    assert refused.value.code == "write_without_metadata"
    assert write in str(refused.value)
    assert not table.timeline().pending()
    table.delete_metadata_table()
    table.create_metadata_table()
    table.upsert([{**NEW, "v": 3.0, "ts": 2}])
    rows = {row["id"]: row["v"] for row in table.read_arrow(["id", "v"]).to_pylist()}
    assert rows == {"old": 1.0, "new": 3.0}
