"""Tables of version 8: Java reads what we write to them, and judges changes of the version."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from tests.canonical import canonical_rows, difference
from tests.golden_tables import archive_of, unpack
from tests.interop.judges import JavaJudge

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("f", pa.float64()),
    ]
)
SKIPPING = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}


def rows(keys: str, ts: int) -> list[dict[str, object]]:
    return [{"id": one, "p": "xy"[one > "b"], "ts": ts, "n": ts, "f": ts / 2} for one in keys]


def assert_agree(java: JavaJudge, path: Path, found: dict[str, int]) -> None:
    ours = canonical_rows(Table(str(path)).read_arrow())
    assert {row["id"]: row["n"] for row in ours} == found
    for metadata in (True, False):
        assert not difference(java.read(path, metadata=metadata), ours)
    query = "SELECT id FROM t WHERE n = {0} ORDER BY id"
    for number in sorted(set(found.values())):
        wanted = sorted(key for key, n in found.items() if n == number)
        answer = java.sql(path, query.format(number), settings=SKIPPING)
        assert [row["id"] for row in answer] == wanted
        assert len(Table(str(path)).read_arrow(["id"], filter=f"n = {number}")) == len(wanted)
    assert java.validate(path) == {}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_java_reads_a_table_of_version_8_before_and_after_changes_of_it(
    type_: str, java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    table = Table.create(
        str(path),
        SCHEMA,
        ["id"],
        ["p"],
        ["ts"],
        type=type_,
        indexes=["record_index"],
        properties={"hoodie.write.table.version": "8"},
    )
    table.upsert(pa.Table.from_pylist(rows("abcd", 1), SCHEMA))
    table.upsert(pa.Table.from_pylist(rows("ac", 2), SCHEMA))
    table.delete(["d"])
    assert_agree(java, path, {"a": 2, "b": 1, "c": 2})
    table.create_index("by_n", columns=["n"])
    table.upsert(pa.Table.from_pylist(rows("b", 3), SCHEMA))
    assert_agree(java, path, {"a": 2, "b": 3, "c": 2})
    table.change_version(9)
    assert_agree(java, path, {"a": 2, "b": 3, "c": 2})
    table.change_version(8)
    assert_agree(java, path, {"a": 2, "b": 3, "c": 2})


@pytest.mark.parametrize("name", ["v8_cow_services_by_102", "v8_mor_by_102"])
def test_a_table_of_release_1_0_is_written_and_upgraded(
    name: str, java: JavaJudge, disk_path: Path
) -> None:
    path = unpack(archive_of(name), disk_path)
    table = Table(str(path))
    own = [one for one in table.schema.names if not one.startswith("_hoodie_")]
    first = table.read_arrow(own).slice(0, 1).to_pylist()
    for turn in range(2):
        changed = [{**row, "ts": 10**15 + turn, "n": 777 + turn} for row in first]
        table.upsert(pa.Table.from_pylist(changed))
        ours = canonical_rows(table.read_arrow())
        assert [row["n"] for row in ours].count(777 + turn) == 1
        for metadata in (True, False):
            assert not difference(java.read(path, metadata=metadata), ours)
        assert java.validate(path) == {}
        if not turn:
            table.change_version(9)
