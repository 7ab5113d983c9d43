"""Tables without key columns: each row gets a key of its own, by which it is changed later on."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.golden_tables import GoldenTable

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int32()), ("city", pa.string())])
ROWS = pa.table({"name": ["a", "a", "b"], "n": [1, 1, 2], "city": ["x", "x", "y"]}, SCHEMA)
GENERATED = re.compile(r"[0-9]{17}_[0-9]+_[0-9]+")


def rows_of(table: Table) -> list[tuple[str, int]]:
    found = table.read_arrow(["name", "n"]).to_pylist()
    return sorted((row["name"], row["n"]) for row in found)


def keys_of(table: Table) -> list[str]:
    found: list[str] = table.read_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    return sorted(found)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, memory_path: str) -> Table:
    made = Table.create(memory_path, SCHEMA, [], ["city"], type=request.param)
    made.insert(ROWS)
    return made


def test_equal_rows_are_rows_of_their_own(table: Table) -> None:
    assert rows_of(table) == [("a", 1), ("a", 1), ("b", 2)]
    table.bulk_insert(ROWS)
    table.upsert(ROWS.slice(0, 1))
    keys = keys_of(table)
    assert len(set(keys)) == 7
    assert all(GENERATED.fullmatch(key) for key in keys)
    assert "hoodie.table.recordkey.fields" not in table.properties


def test_rows_are_changed_by_their_keys(table: Table) -> None:
    before = keys_of(table)
    table.update_where([("name", "=", "a")], {"n": pc.add(pc.field("n"), 1)})
    assert rows_of(table) == [("a", 2), ("a", 2), ("b", 2)]
    assert keys_of(table) == before
    first = table.read_arrow().sort_by("_hoodie_record_key").slice(0, 1)
    place = first.schema.get_field_index("n")
    table.upsert(first.set_column(place, "n", pa.array([9], pa.int32())))
    assert sorted(n for _, n in rows_of(table)) == [2, 2, 9]
    table.update_where([("n", "=", 9)], {"city": "z"})
    assert keys_of(table) == before
    assert table.partitions() == ("city=x", "city=y", "city=z")
    table.delete_where([("name", "=", "b")])
    table.delete([key for key in before if key in keys_of(table)][:1])
    assert len(rows_of(table)) == 1
    with pytest.raises(InvalidRequest, match="have no _hoodie_record_key"):
        table.delete(pa.table({"name": ["a"], "city": ["x"]}))


def test_services_keep_the_keys(table: Table) -> None:
    table.update_where([("name", "=", "b")], {"n": 7})
    before, keys = rows_of(table), keys_of(table)
    if table.properties["hoodie.table.type"] == "MERGE_ON_READ":
        table.compaction.schedule_and_run()
    table.insert(ROWS)
    table.clustering.schedule_and_run()
    assert rows_of(table) == sorted([*before, ("a", 1), ("a", 1), ("b", 2)])
    assert set(keys) < set(keys_of(table))
    found = table.validate(["keys", "files", "metadata_table"])
    assert {one.finding.verdict.value for one in found} == {"ok"}


def test_a_table_of_hudi_is_written_on(golden_copy: GoldenTable) -> None:
    table = Table(str(golden_copy("cow_auto_keys")))
    before = keys_of(table)
    table.update_where([("n", "=", 3)], {"name": "ours"})
    table.insert([{"id": "new", "name": "n9", "v": 1.0, "n": 9, "ts": 1, "p": "a"}])
    table.delete_where([("n", "=", 0)])
    found = table.read_arrow(["name", "n"]).to_pylist()
    assert {row["n"]: row["name"] for row in found}[3] == "ours"
    assert len(keys_of(table)) == len(before)
    assert len(set(keys_of(table)) & set(before)) == len(before) - 1


def test_a_table_without_partitions_is_changed_as_well(memory_path: str) -> None:
    table = Table.create(memory_path, SCHEMA, [])
    table.insert(ROWS)
    table.delete_where([("name", "=", "a")])
    assert rows_of(table) == [("b", 2)]


def test_a_bucket_index_needs_key_columns(memory_path: str) -> None:
    with pytest.raises(InvalidRequest, match="without key columns"):
        Table.create(memory_path, SCHEMA, [], index="BUCKET")
