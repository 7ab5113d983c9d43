"""The version of the format: tables of version 8, made, written, upgraded and downgraded."""

import json

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.golden_tables import GoldenTable

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("d", pa.decimal128(10, 2)),
    ]
)
EIGHT = {"hoodie.write.table.version": "8"}
CLASSES = "org.apache.hudi.common.model."


def rows(keys: str, n: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": one, "p": "x", "ts": n, "n": n} for one in keys], SCHEMA)


def made(type_: str = "mor", **properties: str) -> Table:
    storage = fresh_memory_storage()
    return Table.create(
        storage.location.uri,
        SCHEMA,
        ["id"],
        ["p"],
        ["ts"],
        type=type_,
        indexes=["record_index"],
        properties=EIGHT | properties,
        storage=storage,
    )


def numbers(table: Table) -> dict[str, int]:
    return {row["id"]: row["n"] for row in table.read_arrow(["id", "n"]).to_pylist()}


def defined(table: Table) -> dict[str, dict[str, object]]:
    path = table.properties["hoodie.table.index.defs.path"]
    found: dict[str, dict[str, object]] = json.loads(table.state().storage.read(path))
    return dict(found["indexDefinitions"].items())


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_table_of_version_8_has_indexes_in_its_format_and_keeps_them_true(type_: str) -> None:
    table = made(type_)
    assert table.properties["hoodie.table.version"] == "8"
    assert table.properties["hoodie.table.precombine.field"] == "ts"
    payload = table.properties["hoodie.compaction.payload.class"]
    assert payload == f"{CLASSES}DefaultHoodieRecordPayload"
    table.upsert(rows("abcd", 1))
    table.create_index("by_n", columns=["n"])
    table.upsert(rows("ae", 2))
    table.delete(["d"])
    assert numbers(table) == {"a": 2, "b": 1, "c": 1, "e": 2}
    known = defined(table)
    assert sorted(known) == ["column_stats", "record_index", "secondary_index_by_n"]
    assert {record["version"] for record in known.values()} == {"V1"}
    # It has no form for statistics of decimals.
    assert "d" not in known["column_stats"]["sourceFields"]
    assert len(table.read_arrow(["id"], filter="n = 2")) == 2
    assert {row.state for row in table.index_states()} == {"READY"}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_the_version_changes_both_ways_and_no_row_with_it(type_: str) -> None:
    table = made(type_)
    table.upsert(rows("abc", 1))
    table.create_index("by_n", columns=["n"])
    table.upsert(rows("b", 2))
    assert table.change_version(9, dry_run=True).is_changed
    assert table.config.version == 8
    assert table.change_version(9).dropped == ()
    assert {record["version"] for record in defined(table).values()} == {"V1"}
    legacy = table.properties["hoodie.table.legacy.payload.class"]
    assert legacy == f"{CLASSES}DefaultHoodieRecordPayload"
    assert table.config.merge.ordering_fields == ("ts",)
    table.upsert(rows("bd", 3))
    table.drop_index("column_stats")
    table.create_index("column_stats")
    changed = table.change_version(8)
    assert changed.dropped == ("column_stats",)
    assert "column_stats" in table.config.metadata_partitions
    table.upsert(rows("c", 4))
    if type_ == "mor":
        table.compaction.schedule_and_run()
    assert numbers(table) == {"a": 1, "b": 3, "c": 4, "d": 3}
    assert [len(table.read_arrow(["id"], filter=f"n = {n}")) for n in (1, 3, 4)] == [1, 2, 1]
    assert not table.change_version(8).is_changed


def test_a_write_upgrades_a_table_only_where_that_is_asked_for() -> None:
    table = made()
    table.upsert(rows("a", 1))
    table.upsert(rows("a", 2), {"hoodie.write.table.version": "9"})
    assert table.config.version == 8
    table.upsert(rows("a", 3), {"hoodie.write.auto.upgrade": "true"})
    assert table.config.version == 9
    with pytest.raises(InvalidRequest) as refused:
        table.upsert(rows("a", 4), EIGHT)
    assert refused.value.code == "unsupported_version_change"
    assert numbers(table) == {"a": 3}


def test_what_version_8_has_no_words_for_is_refused_and_nothing_changes() -> None:
    for ordering, properties in (
        (["ts", "n"], {}),
        (["ts"], {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"}),
    ):
        storage = fresh_memory_storage()
        table = Table.create(
            storage.location.uri,
            SCHEMA,
            ["id"],
            ordering=ordering,
            properties=properties,
            storage=storage,
        )
        before = dict(table.properties)
        with pytest.raises(InvalidRequest, match="cannot have version 8"):
            table.change_version(8)
        assert table.properties == before
        with pytest.raises(InvalidRequest, match="cannot have version 8"):
            table.change_version(6)
        with pytest.raises(InvalidRequest, match="stays at version 9"):
            table.change_version(7)


def test_partial_updates_and_keys_that_name_their_column_stay_what_they_are() -> None:
    storage = fresh_memory_storage()
    table = Table.create(
        storage.location.uri,
        SCHEMA,
        ["id"],
        ["p", "n"],
        ["ts"],
        type="mor",
        properties={"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
        storage=storage,
    )
    table.upsert(rows("a", 1))
    table.change_version(8)
    payload = table.properties["hoodie.compaction.payload.class"]
    assert payload == f"{CLASSES}PartialUpdateAvroPayload"
    merging = table.config.merge
    assert (merging.mode.name, merging.partial.name) == ("EVENT_TIME", "IGNORE_DEFAULTS")
    table.upsert(rows("a", 1))
    keys = table.read_arrow(["_hoodie_record_key"]).column(0).to_pylist()
    assert keys == ["id:a"]
    table.change_version(9)
    assert table.config.merge == merging


def test_golden_tables_of_release_1_0_are_written_and_upgraded(golden_copy: GoldenTable) -> None:
    table = Table(str(golden_copy("v8_mor_by_102")))
    before = numbers(table)
    key = min(before)
    row = table.read_arrow(filter=[("id", "=", key)]).to_pylist()[0]
    own = {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
    table.upsert([{**own, "ts": 10**15, "n": 777}])
    assert numbers(table) == before | {key: 777}
    table.change_version(9)
    table.upsert([{**own, "ts": 10**15 + 1, "n": 778}])
    assert numbers(table) == before | {key: 778}
    assert len(table.read_arrow(["id"], filter="n = 778")) == 1
