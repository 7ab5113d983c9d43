"""What little work costs: a write without rows, two rows, the first rows of buckets."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.write.request import Commit

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("name", pa.string())]
)
TWO_ROWS_BYTES_MAX = 40_000
# Each HFile ends in a trailer of 4,096 bytes; there are three.
NEW_TABLE_BYTES_MAX = 56_000
BUCKETS = {"hoodie.bucket.index.num.buckets": 4}
Act = Callable[[Table], Commit]


def created(storage: Storage, **how: object) -> Table:
    given = {"key": ["id"], "partition": ["p"], "ordering": ["ts"]} | how
    return Table.create(storage.location.uri, SCHEMA, storage=storage, **given)  # type: ignore[arg-type]


def rows(*ids: str, partition: str = "a", ts: int = 1) -> pa.Table:
    listed = [{"id": id_, "p": partition, "ts": ts, "name": f"{id_} {ts}"} for id_ in ids]
    return pa.Table.from_pylist(listed, SCHEMA)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda table: table.upsert(rows()), id="upsert"),
        pytest.param(lambda table: table.insert(rows()), id="insert"),
        pytest.param(lambda table: table.bulk_insert(rows()), id="bulk insert"),
        pytest.param(lambda table: table.delete(rows()), id="delete"),
        pytest.param(lambda table: table.delete([]), id="delete of keys"),
    ],
)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_write_without_rows_makes_no_instant(act: Act, kind: str, *, is_new: bool) -> None:
    storage = fresh_memory_storage()
    table = created(storage, type=kind)
    if not is_new:
        table.upsert(rows("k1"))
    # What the first write of a table makes for all of them.
    act(table)
    before = {entry.path for entry in storage.walk("")}
    said = act(table)
    assert (said.instant, said.completed) == (None, None)
    assert {entry.path for entry in storage.walk("")} == before
    assert str(said).endswith("no rows, nothing to commit")


def test_an_overwrite_with_nothing_replaces_all_the_same() -> None:
    table = created(fresh_memory_storage())
    table.upsert(rows("k1"))
    assert table.overwrite(rows()).instant is not None
    assert len(table.read_arrow()) == 0


def test_a_write_without_rows_may_bring_a_column() -> None:
    table = created(fresh_memory_storage())
    table.upsert(rows("k1"))
    wider = rows().append_column("more", pa.array([], pa.int64()))
    evolving = {"lakewarden.write.evolve": True}
    assert table.upsert(wider, options=evolving).columns_added == ("more",)
    assert table.upsert(wider, options=evolving).instant is None


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_two_rows_in_two_file_groups_take_little_space(kind: str) -> None:
    storage = fresh_memory_storage()
    table = created(storage, type=kind, partition=[])
    table.upsert(rows("k1"))
    table.upsert(rows("k2"), options={"hoodie.parquet.small.file.limit": 0})
    files = [one for one in storage.walk("") if one.path.endswith(".parquet")]
    assert len(files) == 2
    assert sum(one.size_bytes for one in files) <= TWO_ROWS_BYTES_MAX


def test_a_new_table_with_two_rows_is_small() -> None:
    storage = fresh_memory_storage()
    created(storage, partition=[]).upsert(rows("k1", "k2"))
    assert sum(one.size_bytes for one in storage.walk("")) <= NEW_TABLE_BYTES_MAX


def test_a_bulk_insert_begins_buckets_with_base_files() -> None:
    storage = fresh_memory_storage()
    table = created(storage, type="mor", index="BUCKET", properties=BUCKETS)
    keys = [f"k{number}" for number in range(40)]
    table.bulk_insert(rows(*keys))
    assert [(len(one.log_files), one.base_file is None) for one in table.file_slices()] == [
        (0, False)
    ] * 4
    # Buckets that are there get logs.
    table.bulk_insert(rows("new", *keys[:3], ts=2))
    assert {one.base_file is None for one in table.file_slices()} == {False}
    assert sum(len(one.log_files) for one in table.file_slices()) > 0
    found = table.read_arrow().sort_by("id").to_pydict()
    assert found["id"] == sorted([*keys, "new"])
    newest = dict(zip(found["id"], found["ts"], strict=True))
    assert [newest[key] for key in ("new", *keys[:4])] == [2, 2, 2, 2, 1]


def test_an_upsert_beside_a_secondary_index_reads_each_log_once_and_its_own_not_at_all() -> None:
    storage = FaultyStorage(fresh_memory_storage())
    table = created(storage, type="mor", partition=[])
    table.create_index("record_index")
    table.upsert(rows("k1", "k2"))
    table.create_index("by_name", columns=["name"])
    for ts in range(2, 5):
        table.upsert(rows("k1", "k2", ts=ts))
    logs = [one.path for one in storage.list("").files if ".log." in one.path]
    before = len(storage.calls)
    table.upsert(rows("k1", "k2", ts=5))
    read = [one.path for one in storage.calls[before:] if one.operation in ("read", "open")]
    assert sorted(path for path in read if ".log." in path and "/" not in path) == sorted(logs)
    assert [row["id"] for row in table.lookup(["k1 5"], by="name").to_pylist()] == ["k1"]
    assert table.lookup(["k1 4"], by="name").num_rows == 0
