"""Keys, partitions and ordering of other types than text: Java and we find each other's rows."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.table.keygen.partition_paths import TIMESTAMPS_AS_TEXT, TIMESTAMPS_KEY
from tests.canonical import canonical_rows, difference
from tests.interop.judges import JavaJudge

NUMBERS = (0.25, 1e7, -1.5, 2e-4, 123456789.0625, 0.1)


def assert_agree(java: JavaJudge, path: Path, names: list[str]) -> None:
    found = canonical_rows(Table(str(path)).read_arrow())
    assert sorted(str(row["name"]) for row in found) == sorted(names)
    assert not difference(java.read(path), found)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_java_finds_keys_and_partitions_of_floating_point_numbers(
    kind: str, type_: pa.DataType, java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    schema = pa.schema([("id", type_), ("name", pa.string()), ("p", type_)])
    table = Table.create(str(path), schema, ["id"], ["p"], type=kind)

    def rows(name: str, *ids: float) -> pa.Table:
        numbers = pa.array(ids, type_)
        return pa.table([numbers, [name] * len(ids), numbers], schema=schema)

    single = type_ == pa.float32()
    numbers = [one for one in NUMBERS if not single or one < 1e7]
    table.upsert(rows("ours", *numbers))
    assert_agree(java, path, ["ours"] * len(numbers))
    java.sql(path, "update t set name = 'java'")
    assert_agree(java, path, ["java"] * len(numbers))
    table.upsert(rows("again", *numbers[:3]))
    table.delete_where([("name", "=", "java")])
    assert_agree(java, path, ["again"] * 3)


def test_java_finds_partitions_of_timestamps_as_sql_spells_them(
    java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    schema = pa.schema(
        [("id", pa.int32()), ("name", pa.string()), ("p", pa.timestamp("us", "UTC"))]
    )
    table = Table.create(
        str(path), schema, ["id"], ["p"], properties={TIMESTAMPS_KEY: TIMESTAMPS_AS_TEXT}
    )
    moments = [datetime(2021, 5, 6, 7, 8, 9, tzinfo=UTC), datetime(2021, 5, 7, tzinfo=UTC), None]
    table.upsert(pa.table([[1, 2, 3], ["ours"] * 3, moments], schema=schema))
    java.sql(path, "update t set name = 'java' where id < 3")
    assert_agree(java, path, ["java", "java", "ours"])
    table.upsert(pa.table([[1, 2, 3], ["again"] * 3, moments], schema=schema))
    assert_agree(java, path, ["again"] * 3)
