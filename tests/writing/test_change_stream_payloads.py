"""Tables of the payload classes for change streams: their rows say themselves what to delete."""

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.description import described

PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."


def table_of(payload: str, type_: str, **columns: pa.DataType) -> Table:
    asked = described({PAYLOAD: MODEL + payload})
    return Table.create(
        "",
        pa.schema({"id": pa.string(), "v": pa.string(), **columns}),
        key=["id"],
        ordering=asked.ordering,
        type=type_,
        merge_mode=asked.merge_mode.removesuffix("_ORDERING").lower(),
        properties=asked.properties,
        storage=fresh_memory_storage(),
    )


def contents(table: Table) -> dict[str, str]:
    rows = table.read_arrow(["id", "v"]).to_pylist()
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_rows_of_dms_are_deleted_by_their_op(type_: str) -> None:
    table = table_of("AWSDmsAvroPayload", type_, Op=pa.string())
    table.upsert([{"id": key, "v": "1", "Op": "I"} for key in "abc"])
    table.upsert([{"id": "a", "v": "2", "Op": "U"}, {"id": "b", "v": "1", "Op": "D"}])
    assert contents(table) == {"a": "2", "c": "1"}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_rows_of_debezium_are_ordered_by_their_place_in_the_log(type_: str) -> None:
    table = table_of(
        "debezium.PostgresDebeziumAvroPayload",
        type_,
        _event_lsn=pa.int64(),
        _change_operation_type=pa.string(),
    )

    def upsert(*changes: tuple[str, str, int, str]) -> None:
        names = ("id", "v", "_event_lsn", "_change_operation_type")
        table.upsert([dict(zip(names, one, strict=True)) for one in changes])

    upsert(("a", "1", 5, "c"), ("b", "1", 5, "c"), ("c", "1", 5, "c"))
    upsert(("a", "0", 4, "u"), ("b", "1", 6, "d"))
    upsert(("c", "__debezium_unavailable_value", 7, "u"))
    assert contents(table) == {"a": "1", "c": "1"}
