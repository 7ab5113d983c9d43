"""Tables without key columns: Java and we write on after each other."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from tests.canonical import canonical_rows, difference
from tests.interop.judges import JavaJudge

SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int32()), ("p", pa.string())])


def rows_of(name: str, *numbers: int) -> pa.Table:
    rows = [{"name": name, "n": number, "p": str(number % 2)} for number in numbers]
    return pa.Table.from_pylist(rows, SCHEMA)


def assert_agree(java: JavaJudge, path: Path, names: list[tuple[int, str]]) -> None:
    found = canonical_rows(Table(str(path)).read_arrow())
    assert sorted((row["n"], row["name"]) for row in found) == names
    assert not difference(java.read(path), found)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_java_goes_on_with_a_table_without_key_columns(
    kind: str, java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    table = Table.create(str(path), SCHEMA, [], ["p"], type=kind)
    table.insert(rows_of("ours", 1, 2, 2, 3))
    table.update_where([("n", "=", 3)], {"name": "updated"})
    assert_agree(java, path, [(1, "ours"), (2, "ours"), (2, "ours"), (3, "updated")])
    java.sql(path, "insert into t (name, n, p) values ('java', 4, '0'), ('java', 5, '1')")
    java.sql(path, "update t set name = 'changed' where n = 2")
    java.sql(path, "delete from t where n = 1")
    after = [(2, "changed"), (2, "changed"), (3, "updated"), (4, "java"), (5, "java")]
    assert_agree(java, path, after)
    table.update_where([("n", "=", 5)], {"name": "ours"})
    table.delete_where([("n", "=", 4)])
    if kind == "mor":
        table.compaction.schedule_and_run()
    assert_agree(java, path, [*after[:3], (5, "ours")])
