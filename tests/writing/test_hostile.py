"""Hostile input: whatever a caller passes, the right rows come back or a clear error does."""

import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.sampling import sample

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())]
)
TYPES = ("cow", "mor")

LONG_KEY = "x" * 100_000
KEYS = (
    "with space",
    "a,b:c;d|e",
    "id:1,p:2",
    "quote'\"`\\",
    "line\nbreak\r\ttab",
    "näme ☃ 😀",
    "__null__",
    "../../etc/passwd",
    "$\\$",
    "0",
    "-0",
    "NaN",
)
PARTITIONS = ("plain", "with space", "ünï", "100%", "a=b", "p=a", "x+y", "quote'", "#?&;")


def table_of(kind: str, *, partition: Sequence[str] = (), **properties: str) -> Table:
    return Table.create(
        "",
        SCHEMA,
        key=["id"],
        partition=list(partition),
        ordering=["ts"],
        type=kind,
        properties={
            "hoodie.table.name": "hostile",
            **{name.replace("__", "."): value for name, value in properties.items()},
        },
        storage=fresh_memory_storage(),
    )


def row(key: str | None, partition: str | None = "a", ts: int = 1) -> dict[str, object]:
    return {"id": key, "p": partition, "ts": ts, "v": f"{ts}"}


def rows_of(table: Table) -> list[dict[str, object]]:
    found = table.read_arrow(SCHEMA.names)
    assert found.equals(table.read_arrow(SCHEMA.names, use_metadata=False))
    return sorted(found.to_pylist(), key=lambda one: (str(one["id"]), str(one["p"])))


def ordered(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda one: (str(one["id"]), str(one["p"])))


def refused(table: Table, rows: object) -> InvalidRequest:
    """The error of an upsert that must change nothing."""
    before = rows_of(table), len(table.timeline().instants)
    with pytest.raises(InvalidRequest) as caught:
        table.upsert(rows)
    assert (rows_of(table), len(table.timeline().instants)) == before
    return caught.value


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "RECORD_INDEX", "BUCKET"])
@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_any_text_are_found_again(kind: str, index: str) -> None:
    table = table_of(kind, hoodie__index__type=index, hoodie__bucket__index__num__buckets="4")
    table.upsert([row(key) for key in KEYS])
    table.upsert([row(key, ts=2) for key in KEYS])
    assert rows_of(table) == ordered([row(key, ts=2) for key in KEYS])
    table.delete([row(key) for key in KEYS[::2]])
    assert rows_of(table) == ordered([row(key, ts=2) for key in KEYS[1::2]])


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "BUCKET"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_very_long_key_is_a_key(kind: str, index: str) -> None:
    table = table_of(kind, hoodie__index__type=index)
    table.upsert([row(LONG_KEY), row("short")])
    table.upsert([row(LONG_KEY, ts=2)])
    assert rows_of(table) == ordered([row(LONG_KEY, ts=2), row("short")])


def test_a_key_that_no_record_index_can_hold_is_refused() -> None:
    table = table_of("cow", hoodie__index__type="RECORD_INDEX")
    table.upsert([row("short")])
    with pytest.raises(InvalidRequest, match="32767"):
        table.upsert([row(LONG_KEY), row("other")])
    assert rows_of(table) == [row("short")]
    table.upsert([row("other")])
    assert rows_of(table) == [row("other"), row("short")]


@pytest.mark.parametrize("key", [None, ""], ids=["null", "empty"])
def test_a_row_without_a_key_is_refused_with_its_number(key: str | None) -> None:
    error = refused(table_of("cow"), [row("a"), row(key)])
    assert error.code == "null_record_key"
    assert error.parameters["row"] == 1


@pytest.mark.parametrize("kind", TYPES)
def test_the_newest_of_repeated_keys_stays(kind: str) -> None:
    table = table_of(kind)
    commit = table.upsert([row("a", ts=1), row("a", ts=3), row("a", ts=2), row("b", ts=1)])
    assert commit.rows_inserted == 2
    assert rows_of(table) == [row("a", ts=3), row("b", ts=1)]


@pytest.mark.parametrize("urlencode", ["false", "true"])
@pytest.mark.parametrize("kind", TYPES)
def test_partitions_of_any_text_come_back(kind: str, urlencode: str) -> None:
    table = table_of(
        kind, partition=["p"], hoodie__datasource__write__partitionpath__urlencode=urlencode
    )
    written = [row(f"k{number}", value) for number, value in enumerate(PARTITIONS)]
    table.upsert(written)
    assert rows_of(table) == ordered(written)
    table.upsert([{**one, "ts": 2, "v": "2"} for one in written])
    assert rows_of(table) == ordered([{**one, "ts": 2, "v": "2"} for one in written])


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_value_is_not_taken_for_null(value: str) -> None:
    table = table_of("cow", partition=["p"])
    table.upsert([row("k", None)])
    assert refused(table, [row("k", value)]).code == "ambiguous_partition_value"
    assert rows_of(table) == [row("k", None)]
    assert table.partitions() == ("p=__HIVE_DEFAULT_PARTITION__",)


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_several_columns_never_become_one_row(kind: str) -> None:
    columns = pa.schema([("x", pa.string()), ("y", pa.string()), ("v", pa.int64())])
    table = Table.create("", columns, key=["x", "y"], type=kind, storage=fresh_memory_storage())
    written = [{"x": "1", "y": "2,y:3", "v": 1}, {"x": None, "y": "b", "v": 2}]
    table.upsert(written)
    for x, y in (("1,y:2", "3"), ("__null__", "b")):
        for write in (table.upsert, table.insert, table.merge, table.delete):
            with pytest.raises(InvalidRequest) as caught:
                write([{"x": x, "y": y, "v": 3}])
            assert caught.value.code == "ambiguous_record_key"
            assert repr(x) in str(caught.value)
    assert sorted(table.read_arrow(columns.names).to_pylist(), key=str) == sorted(written, key=str)


@pytest.mark.parametrize("value", ["..", "../up", "/root", "a/../../b", "a//b", "nul\0"])
def test_no_partition_leads_out_of_the_table(value: str, tmp_path: Path) -> None:
    place = tmp_path / "inside" / "table"
    table = Table.create(
        str(place),
        SCHEMA,
        key=["id"],
        partition=["p"],
        properties={"hoodie.datasource.write.hive_style_partitioning": "false"},
    )
    outside = {path for path in tmp_path.rglob("*") if place not in path.parents}
    assert refused(table, [row("a", value)]).code
    assert {path for path in tmp_path.rglob("*") if place not in path.parents} == outside


@pytest.mark.parametrize("kind", TYPES)
def test_no_rows_make_an_empty_commit(kind: str) -> None:
    table = table_of(kind)
    commit = table.upsert(SCHEMA.empty_table())
    assert (commit.files, commit.rows_written) == (0, 0)
    assert table.delete([]).rows_deleted == 0
    assert rows_of(table) == []


def test_rows_without_columns_are_refused() -> None:
    assert refused(table_of("cow"), pa.table({})).code == "no_columns"


def test_missing_columns_are_refused_unless_null_is_meant() -> None:
    table = table_of("cow")
    table.upsert([row("a")])
    lacking = [{"id": "a", "p": "a", "ts": 2}]
    assert refused(table, lacking).code == "missing_columns"
    table.upsert(lacking, set_null_for_missing_columns=True)
    assert rows_of(table) == [{**row("a", ts=2), "v": None}]


def test_columns_may_come_in_any_order_and_new_ones_are_added_if_asked() -> None:
    table = table_of("mor")
    table.upsert([row("a")])
    new = [{"v": "2", "extra": 7, "ts": 2, "p": "a", "id": "b"}]
    assert refused(table, new).code == "unknown_columns"
    assert table.upsert(new, evolve=True).columns_added == ("extra",)
    found = table.read_arrow([*SCHEMA.names, "extra"]).to_pylist()
    assert {one["id"]: one["extra"] for one in found} == {"a": None, "b": 7}


def test_a_narrower_type_is_refused_with_both_types() -> None:
    table = table_of("cow")
    error = refused(table, pa.table({"id": ["a"], "p": ["a"], "ts": ["text"], "v": ["1"]}))
    assert "ts" in str(error)
    assert "int64" in str(error)


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_that_are_none_and_numbers_at_the_limit(kind: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("f", pa.float64()),
            ("g", pa.float32()),
            ("d", pa.decimal128(38, 18)),
            ("i", pa.int64()),
        ]
    )
    largest = "99999999999999999999.999999999999999999"
    table_rows = pa.table(
        {
            "id": ["inf", "nan", "null", "zero"],
            "f": [math.inf, math.nan, None, -0.0],
            "g": pa.array([-math.inf, math.nan, None, 0.0], pa.float32()),
            "d": pa.array([f"-{largest}", largest, None, "0"]).cast(pa.decimal128(38, 18)),
            "i": [-(2**63), 2**63 - 1, None, 0],
        }
    ).cast(schema)
    table = Table.create("", schema, key=["id"], type=kind, storage=fresh_memory_storage())
    for _ in range(2):
        table.upsert(table_rows)
        found = table.read_arrow(schema.names).sort_by("id")
        assert repr(found.to_pylist()) == repr(table_rows.to_pylist())
    assert "inf" in table.read_arrow(["id"], filter=[("f", ">", 1.0)])["id"].to_pylist()
    assert table.read_arrow(["id"], filter=[("i", "=", 2**63 - 1)])["id"].to_pylist() == ["nan"]


@pytest.mark.parametrize("kind", sample(TYPES, 2))
def test_two_thousand_columns(kind: str) -> None:
    names = [f"c{number}" for number in range(2000)]
    schema = pa.schema([("id", pa.string()), *((name, pa.int32()) for name in names)])
    table = Table.create("", schema, key=["id"], type=kind, storage=fresh_memory_storage())
    wide = pa.table({"id": ["a", "b"], **{name: [1, 2] for name in names}}).cast(schema)
    table.upsert(wide)
    table.upsert(wide.slice(0, 1))
    assert table.read_arrow(schema.names).sort_by("id").equals(wide)


@pytest.mark.parametrize(
    ("option", "nearest"),
    [
        ("hoodie.parquet.small.file.limits", "hoodie.parquet.small.file.limit"),
        ("hoodie.index.typ", "hoodie.index.type"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(option: str, nearest: str) -> None:
    table = table_of("cow")
    with pytest.raises(InvalidRequest, match=nearest) as caught:
        table.upsert([row("a")], {option: 1})
    assert caught.value.code == "unknown_option"
    assert rows_of(table) == []
