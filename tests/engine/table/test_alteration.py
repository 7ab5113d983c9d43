"""ALTER TABLE: what becomes of the columns, of older files, and of the history with its ids."""

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
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


@pytest.mark.parametrize("type_", ["cow", "mor"])
@pytest.mark.parametrize("new_name", [None, "amount"], ids=["dropped", "renamed"])
def test_a_write_that_adds_a_name_of_before_leaves_the_older_rows_without_it(
    type_: str, new_name: str | None
) -> None:
    table = table_of(type_)
    changed(table, ColumnChange(column="qty", drops=new_name is None, new_name=new_name))
    row: dict[str, object] = {"id": 3, "name": "c", "city": "x", "qty": 30}
    # It goes to the file of row 1, whose rows are written anew.
    table.upsert([row | ({} if new_name is None else {new_name: None})], evolve=True)
    assert [row["qty"] for row in own(table)] == [None, None, 30]
    if new_name is not None:
        assert [row[new_name] for row in own(table)] == [10, 20, None]


PLACE = pa.struct([("n", pa.string()), ("a", pa.int32())])
NESTED = pa.schema(
    [
        ("id", pa.int32()),
        ("s", PLACE),
        ("l", pa.list_(PLACE)),
        ("m", pa.map_(pa.string(), PLACE)),
        ("x", pa.map_(pa.string(), pa.int32())),
    ]
)
OLD: dict[str, object] = {"n": "v", "a": 1}
NESTED_CHANGES = [
    ColumnChange(column="s.b", adds=True, type=pa.string(), after="n"),
    ColumnChange(column="m.value.a", after=""),
    ColumnChange(column="s.n", new_name="nn"),
    ColumnChange(column="s.a", drops=True),
    ColumnChange(column="s.a", adds=True, type=pa.string(), after="nn"),
    ColumnChange(column="l.element.n", new_name="q"),
    ColumnChange(column="m.value.a", drops=True),
    ColumnChange(column="m.value.a", adds=True, type=pa.int32()),
    ColumnChange(column="x.value", type=pa.float64()),
    ColumnChange(column="s", new_name="u"),
    ColumnChange(column="s", adds=True, type=pa.struct([("n", pa.int32())])),
]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_fields_inside_of_columns_change_as_columns_do(type_: str) -> None:
    storage = fresh_memory_storage()
    table = Table.create(storage.location.uri, NESTED, ["id"], type=type_, storage=storage)
    first = {"id": 1, "s": OLD, "l": [OLD, None], "m": [("k", OLD)], "x": [("k", 5)]}
    none = {"id": 2, "s": None, "l": None, "m": None, "x": None}
    table.upsert(pa.Table.from_pylist([first, none], NESTED))
    table.upsert(pa.Table.from_pylist([first], NESTED))
    for change in NESTED_CHANGES:
        changed(table, change)
    kept = {
        "id": 1,
        "u": {"nn": "v", "a": None, "b": None},
        "l": [{"q": "v", "a": 1}, None],
        "m": [("k", {"n": "v", "a": None})],
        "x": [("k", 5.0)],
        "s": None,
    }
    assert own(table) == [kept, {**none, "u": None}]
    new = {
        "id": 2,
        "u": {"nn": "new", "a": "A", "b": "B"},
        "l": [{"q": "Q", "a": 3}],
        "m": [("z", {"n": "N", "a": 7})],
        "x": [("k", 1.5)],
        "s": {"n": 4},
    }
    columns = pa.schema([field for field in table.schema if field.name in new])
    table.upsert(pa.Table.from_pylist([new], columns))
    assert own(table) == [kept, new]
    if type_ == "mor":
        table.compaction.schedule_and_run()
    else:
        table.clustering.schedule_and_run()
    assert own(table) == [kept, new]
    past = table.read_arrow(as_of=table.timeline().completed()[0].requested)
    assert past.select(NESTED.names).to_pylist()[0] == first


CONVERTED: list[tuple[pa.DataType, object, pa.DataType, object]] = [
    (pa.int32(), 11, pa.string(), "11"),
    (pa.int64(), 11, pa.float64(), 11.0),
    (pa.int64(), 700001, pa.decimal128(16, 4), Decimal("700001.0000")),
    (pa.float32(), 101.01, pa.string(), "101.01"),
    (pa.float32(), 601.01, pa.decimal128(16, 4), Decimal("601.0100")),
    (pa.float64(), 1e-5, pa.string(), "1.0E-5"),
    (pa.float64(), 10.025, pa.decimal128(4, 2), Decimal("10.03")),
    (pa.float64(), -10.025, pa.decimal128(4, 2), Decimal("-10.03")),
    (pa.decimal128(10, 4), Decimal("1.5"), pa.decimal128(18, 8), Decimal("1.50000000")),
    (pa.decimal128(10, 4), Decimal("1.5"), pa.string(), "1.5000"),
    (pa.date32(), date(2021, 12, 25), pa.string(), "2021-12-25"),
    (pa.string(), "2021-12-25", pa.date32(), date(2021, 12, 25)),
    (pa.string(), "1.5", pa.decimal128(4, 2), Decimal("1.50")),
]


@pytest.mark.parametrize(("before", "value", "after", "found"), CONVERTED)
def test_values_become_what_hudi_makes_of_them(
    before: pa.DataType, value: object, after: pa.DataType, found: object
) -> None:
    storage = fresh_memory_storage()
    schema = pa.schema([("id", pa.int32()), ("v", before), ("n", pa.struct([("v", before)]))])
    table = Table.create(storage.location.uri, schema, ["id"], type="mor", storage=storage)
    table.upsert(pa.Table.from_pylist([{"id": 1, "v": value, "n": {"v": value}}], schema))
    table.upsert(pa.Table.from_pylist([{"id": 2, "v": value, "n": None}], schema))
    for column in ("v", "n.v"):
        changed(table, ColumnChange(column=column, type=after))
    rows = [{"id": 1, "v": found, "n": {"v": found}}, {"id": 2, "v": found, "n": None}]
    assert own(table) == rows
    assert table.read_arrow(["id"], filter=pc.field("v") == pa.scalar(found, after)).num_rows == 2
    table.clustering.schedule_and_run()
    assert own(table) == rows


def test_a_key_may_become_longer_and_an_indexed_column_stays() -> None:
    storage = fresh_memory_storage()
    schema = pa.schema([("id", pa.int32()), ("v", pa.int32())])
    table = Table.create(storage.location.uri, schema, ["id"], type="mor", storage=storage)
    table.upsert(pa.table({"id": [1], "v": [2]}, schema))
    changed(table, ColumnChange(column="id", type=pa.int64()))
    table.upsert(pa.table({"id": [1, 5_000_000_000], "v": [3, 4]}))
    assert [row["v"] for row in own(table)] == [3, 4]
    table.create_index("record_index")
    table.create_index("by_v", columns=["v"])
    for change in (
        ColumnChange(column="v", type=pa.string()),
        ColumnChange(column="v", new_name="w"),
        ColumnChange(column="v", drops=True),
    ):
        with pytest.raises(InvalidRequest, match="by_v"):
            changed(table, change)


def test_statistics_of_a_dropped_column_tell_nothing_of_a_new_one() -> None:
    table = table_of("cow")
    changed(table, ColumnChange(column="qty", drops=True))
    changed(table, ColumnChange(column="qty", adds=True, type=pa.int32()))
    assert table.read_arrow(["id"], filter=pc.field("qty").is_null()).num_rows == 2


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
        ColumnChange(column="name", type=pa.date32()),
        ColumnChange(column="qty", type=pa.decimal128(4, 3)),
        ColumnChange(column="name", nullable=False),
        ColumnChange(column="name", after="none"),
        ColumnChange(column="name", after="name"),
        ColumnChange(column="_hoodie_file_name", drops=True),
        ColumnChange(column="a.b", adds=True, type=pa.int32()),
        ColumnChange(column="name.b", adds=True, type=pa.int32()),
        ColumnChange(column="id", type=pa.string()),
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
