"""Tables without meta columns: their keys are made of the rows' columns, wherever one is needed."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.properties_file import update_properties
from tests.golden_tables import GoldenTable

SCHEMA = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("ts", pa.int64()), ("city", pa.string())]
)
VIRTUAL = {"hoodie.populate.meta.fields": "false"}


def rows(*given: tuple[str, int, int, str]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA
    )


def made(path: str, key: list[str], type: str) -> Table:
    return Table.create(path, SCHEMA, key, ["city"], ordering=["ts"], type=type, properties=VIRTUAL)


@pytest.mark.parametrize("key", [["id"], ["id", "n"]], ids=["plain", "of two columns"])
@pytest.mark.parametrize("type", ["cow", "mor"])
def test_files_store_no_keys_and_rows_have_them_all_the_same(
    key: list[str], type: str, memory_path: str
) -> None:
    table = made(memory_path, key, type)
    table.upsert(rows(("a", 1, 1, "x"), ("b", 2, 1, "x"), ("c", 3, 1, "y")))
    table.upsert(rows(("a", 1, 2, "x"), ("b", 2, 0, "x")))
    table.delete_where([("id", "=", "c")])
    assert table.read_arrow().schema.names == SCHEMA.names
    named = ["id:a,n:1", "id:b,n:2"] if key[1:] else ["a", "b"]
    found = table.read_arrow(["_hoodie_record_key", "_hoodie_partition_path", "ts"])
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        (named[0], "city=x", 2),
        (named[1], "city=x", 1),
    ]
    assert table.lookup(named[:1]).column("id").to_pylist() == ["a"]
    storage = table.state().storage
    base = next(one.base_file for one in table.file_slices() if one.base_file is not None)
    assert base is not None
    with storage.open(f"city=x/{base.name}") as source:
        stored = pq.ParquetFile(source)
        assert stored.read(["_hoodie_record_key"]).column(0).null_count == stored.metadata.num_rows
        assert b"org.apache.hudi.bloomfilter" not in (stored.metadata.metadata or {})


@pytest.mark.parametrize("type", ["cow", "mor"])
def test_key_columns_that_files_keep_as_dictionaries_of_nothing_are_filled(
    type: str, memory_path: str
) -> None:
    table = made(memory_path, ["id"], type)
    table.upsert(rows(*((str(number), number, 1, "x") for number in range(500))))
    table.upsert(rows(("7", 7, 2, "x"), ("500", 500, 2, "x")))
    table.delete_where([("n", "<", 5)])
    table.clustering.schedule_and_run()
    found = table.read_arrow(["_hoodie_record_key", "id", "ts"]).to_pylist()
    assert all(row["_hoodie_record_key"] == row["id"] for row in found)
    assert (len(found), sum(row["ts"] for row in found)) == (496, 498)


@pytest.mark.parametrize(
    ("key", "properties", "why"),
    [
        ([], {}, "no key columns"),
        (["id"], {"hoodie.table.cdc.enabled": "true"}, "change data capture"),
        (["id"], {"hoodie.table.keygenerator.type": "CUSTOM"}, "key generator CUSTOM"),
        (["id"], {"hoodie.metadata.global.record.level.index.enable": "true"}, "record_index"),
    ],
)
def test_what_hudi_does_not_write_is_refused_at_the_creation(
    key: list[str], properties: dict[str, str], why: str, memory_path: str
) -> None:
    with pytest.raises(InvalidRequest, match=why) as refused:
        Table.create(memory_path, SCHEMA, key, properties=VIRTUAL | properties)
    assert refused.value.code == "unsupported_virtual_keys"
    with pytest.raises(InvalidRequest, match="No Hudi table"):
        Table(memory_path).read_arrow()


def test_an_index_of_keys_and_changes_are_refused(memory_path: str) -> None:
    table = made(memory_path, ["id"], "cow")
    table.upsert(rows(("a", 1, 1, "x")))
    for index in ("record_index", "bloom_filters"):
        with pytest.raises(InvalidRequest, match=f"cannot have the index {index}"):
            table.create_index(index, index_type=index, columns=["id"])
    with pytest.raises(InvalidRequest, match="does not record which commit"):
        table.changes_arrow("0")


def test_a_table_by_java_is_written_on(golden_copy: GoldenTable) -> None:
    table = Table(str(golden_copy("cow_virtual_keys_utc")))
    before = table.read_arrow()
    first = before.sort_by("id").slice(0, 1)
    place = first.schema.get_field_index("ts")
    table.upsert(first.set_column(place, "ts", pa.array([9], pa.int64())))
    after = table.read_arrow()
    assert len(after) == len(before)
    assert max(after.column("ts").to_pylist()) == 9
    table.clustering.schedule_and_run()
    assert table.read_arrow().sort_by("id").equals(after.sort_by("id"))


def test_an_index_of_keys_that_another_writer_has_left_is_not_believed(memory_path: str) -> None:
    table = made(memory_path, ["id"], "cow")
    table.upsert(rows(("a", 1, 1, "x")))
    named = "hoodie.table.metadata.partitions"
    partitions = f"{table.properties[named]},record_index"
    update_properties(table.state().storage, {named: partitions})
    assert table.lookup(["a"]).column("id").to_pylist() == ["a"]
    assert "the table stores no keys" in str(table.explain(filter="id = 'a'"))
    with pytest.raises(InvalidRequest, match="cannot have the index record_index"):
        table.upsert(rows(("b", 1, 1, "x")))
