"""A write that did not tell the metadata table is read all the same, and no write builds on it.

Some engine's writer may not know of the metadata table, or be set not to write it.
"""

from collections.abc import Callable

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.table import Table
from tests.writing.shapes import Shape

OLD = {"id": "old", "p": "a", "ts": 1, "v": 1.0, "name": "n"}
NEW = {**OLD, "id": "new", "p": "b"}


def table_with_unheard_write(shape: Shape, updates: int = 0) -> tuple[MemoryStorage, str]:
    """Some writes; of the last one the metadata table knows nothing."""
    storage = fresh_memory_storage()
    table = shape.create("", storage=storage)
    for ts in range(1, updates + 2):
        table.upsert([{**OLD, "ts": ts}])
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


@pytest.mark.parametrize(
    ("kind", "service"),
    [
        ("mor", lambda table: table.archive()),
        ("mor", lambda table: table.compaction.schedule()),
        ("cow", lambda table: table.clean(options={"hoodie.clean.commits.retained": "1"})),
        ("mor", lambda table: table.maintain_metadata()),
    ],
    ids=["archive", "compaction", "clean", "metadata services"],
)
def test_services_do_not_take_away_what_tells_of_it(
    kind: str, service: Callable[[Table], object]
) -> None:
    storage, _ = table_with_unheard_write(Shape(kind), updates=3)
    table = Table.on(storage)
    with pytest.raises(CorruptTable) as refused:
        service(table)
    assert refused.value.code == "write_without_metadata"
    assert not table.plans()
    assert sorted(table.read_arrow(["id"])["id"].to_pylist()) == ["new", "old"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_rollback_of_it_makes_the_table_whole(kind: str) -> None:
    storage, write = table_with_unheard_write(Shape(kind))
    table = Table.on(storage)
    table.rollback(write)
    table.upsert([{**OLD, "ts": 2, "v": 4.0}])
    assert table.read_arrow(["id", "v"]).to_pylist() == [{"id": "old", "v": 4.0}]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_writes_are_refused_until_the_metadata_table_is_made_anew(kind: str) -> None:
    storage, write = table_with_unheard_write(Shape(kind))
    table = Table.on(storage)
    assert "failed" in {one.finding.verdict for one in table.validate()}
    before = sorted(entry.path for entry in storage.walk(""))
    with pytest.raises(CorruptTable) as refused:
        table.upsert([{**NEW, "v": 2.0}])
    assert refused.value.code == "write_without_metadata"
    assert write in str(refused.value)
    assert sorted(entry.path for entry in storage.walk("")) == before
    table.delete_metadata_table()
    table.create_metadata_table()
    table.upsert([{**NEW, "v": 3.0, "ts": 2}])
    rows = {row["id"]: row["v"] for row in table.read_arrow(["id", "v"]).to_pylist()}
    assert rows == {"old": 1.0, "new": 3.0}
