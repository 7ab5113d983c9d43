"""Payload classes for change streams: Java writes tables of all versions by them, and we agree."""

from pathlib import Path

import pytest

from lakewarden import Table
from tests.interop.java_writes import SMALL
from tests.interop.judges import JavaJudge

PAYLOAD = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
UNAVAILABLE = "__debezium_unavailable_value"
COLUMNS = {
    "id": "string",
    "v": "string",
    "_event_lsn": "bigint",
    "_change_operation_type": "string",
}
BATCHES = (
    [("a", "1", 5, "c"), ("b", "1", 5, "c"), ("c", "1", 5, "c")],
    [("a", "0", 4, "u"), ("b", "1", 6, "d")],
    [("c", UNAVAILABLE, 7, "u")],
)


@pytest.mark.parametrize(("version", "javas"), [("9", "1"), ("8", UNAVAILABLE)])
def test_a_value_that_debezium_has_left_out_is_that_of_the_older_row(
    version: str, javas: str, java: JavaJudge, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    options = SMALL | {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.precombine.field": "_event_lsn",
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.payload.class": PAYLOAD,
        "hoodie.write.table.version": version,
        "hoodie.write.auto.upgrade": "false",
    }
    for batch in BATCHES:
        rows = [dict(zip(COLUMNS, one, strict=True)) for one in batch]
        java.write(path, rows, columns=COLUMNS, options=options)
    ours = Table(str(path)).read_arrow(["id", "v"]).to_pylist()
    assert {row["id"]: row["v"] for row in ours} == {"a": "1", "c": "1"}
    assert {row["id"]: row["v"] for row in java.read(path)} == {"a": "1", "c": javas}
