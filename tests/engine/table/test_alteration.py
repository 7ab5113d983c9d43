"""ALTER TABLE: what becomes of the columns, of older files, and of the history with its ids."""

import json

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.alteration import ColumnChange
from lakewarden.engine.write.operations import alter

SCHEMA = pa.schema(
    [("id", pa.int32()), ("name", pa.string()), ("qty", pa.int32()), ("city", pa.string())]
)
ROWS = pa.table({"id": [1, 2], "name": ["a", "b"], "qty": [10, 20], "city": ["x", "y"]}, SCHEMA)


def table_of(type_: str) -> Table:
    storage = fresh_memory_storage()
    table = Table.create(
        storage.location.uri, SCHEMA, ["id"], ["city"], type=type_, storage=storage
    )
    table.upsert(ROWS)
    return table


def own(table: Table) -> list[dict[str, object]]:
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    return sorted(table.read_arrow(names).to_pylist(), key=lambda row: int(row["id"]))


def changed(table: Table, *changes: ColumnChange) -> None:
    table.write(alter(changes))


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_renamed_column_keeps_its_values_and_a_new_one_of_the_name_has_none(type_: str) -> None:
    table = table_of(type_)
    changed(table, ColumnChange(column="name", new_name="title"))
    changed(table, ColumnChange(column="name", adds=True, type=pa.string()))
    table.upsert(
        pa.table({"id": [2], "title": ["bb"], "qty": [21], "city": ["y"], "name": ["new"]})
    )
    assert own(table) == [
        {"id": 1, "title": "a", "qty": 10, "city": "x", "name": None},
        {"id": 2, "title": "bb", "qty": 21, "city": "y", "name": "new"},
    ]
    assert table.read_arrow(["id"], filter=[("name", "=", "a")]).num_rows == 0
    assert table.read_arrow(["id"], filter=[("title", "=", "a")]).num_rows == 1


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_dropped_column_does_not_come_back_with_its_name(type_: str) -> None:
    table = table_of(type_)
    changed(table, ColumnChange(column="qty", drops=True))
    assert "qty" not in table.schema.names
    changed(table, ColumnChange(column="qty", adds=True, type=pa.string()))
    assert [row["qty"] for row in own(table)] == [None, None]
    if type_ == "mor":
        table.upsert(pa.table({"id": [1], "name": ["a"], "city": ["x"], "qty": ["one"]}))
        table.compaction.schedule_and_run()
        assert [row["qty"] for row in own(table)] == ["one", None]


def test_each_version_has_ids_that_no_other_column_ever_had() -> None:
    table = table_of("cow")
    changed(table, ColumnChange(column="qty", drops=True))
    changed(
        table,
        ColumnChange(column="qty", adds=True, type=pa.list_(pa.int64()), after="id"),
        ColumnChange(column="name", new_name="title", comment="of the row"),
    )
    versions = [json.loads(one.text) for one in table.state().history.versions]
    ids = [{field["name"]: field["id"] for field in one["fields"]} for one in versions]
    assert len(versions) == 3
    assert versions[0]["version_id"] == 0
    assert ids[0]["name"] == ids[2]["title"]
    assert ids[2]["qty"] > max(ids[0].values())
    assert "qty" not in ids[1]
    last = versions[2]["fields"]
    assert [field["name"] for field in last[5:]] == ["id", "qty", "title", "city"]
    assert last[7]["doc"] == "of the row"
    assert versions[2]["max_column_id"] > ids[2]["qty"]


def test_what_needs_no_history_makes_none() -> None:
    table = table_of("cow")
    changed(
        table,
        ColumnChange(column="first", adds=True, type=pa.int32(), after=""),
        ColumnChange(column="qty", type=pa.int64(), comment="pieces"),
        ColumnChange(column="name", after="city"),
    )
    assert table.state().history.versions == ()
    assert table.schema.names[5:] == ["first", "id", "qty", "city", "name"]
    assert [row["qty"] for row in own(table)] == [10, 20]
    assert table.read_arrow(as_of=table.timeline().completed()[0].requested).num_rows == 2


@pytest.mark.parametrize(
    "change",
    [
        ColumnChange(column="id", drops=True),
        ColumnChange(column="city", new_name="town"),
        ColumnChange(column="none", drops=True),
        ColumnChange(column="qty", new_name="name"),
        ColumnChange(column="qty", adds=True, type=pa.int32()),
        ColumnChange(column="more", adds=True, type=pa.int32(), nullable=False),
        ColumnChange(column="name", type=pa.int32()),
        ColumnChange(column="name", nullable=False),
        ColumnChange(column="name", after="none"),
        ColumnChange(column="_hoodie_file_name", drops=True),
        ColumnChange(column="a.b", adds=True, type=pa.int32()),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(change: ColumnChange) -> None:
    table = table_of("cow")
    before = len(table.timeline().completed())
    with pytest.raises(InvalidRequest, match="ALTER TABLE cannot change the column"):
        changed(table, change)
    assert len(table.timeline().completed()) == before
    assert table.schema.names[5:] == SCHEMA.names


def test_settings_are_kept_with_the_table_or_removed() -> None:
    table = table_of("cow")
    key = "hoodie.parquet.small.file.limit"
    table.set_settings({key: "7"})
    assert table.properties[f"lakewarden.setting.{key}"] == "7"
    table.set_settings({}, [key])
    assert f"lakewarden.setting.{key}" not in table.properties
    for wrong in (
        {key: "many"},
        {"hoodie.index.type": "BUCKET"},
        {"hoodie.table.recordkey.fields": "name"},
        {"hoodie.datasource.write.hive_style_partitioning": "false"},
        {"hoodie.parquet.small.file.limt": "1"},
    ):
        with pytest.raises(InvalidRequest):
            table.set_settings(wrong)
