"""Tables of version 6: Java reads what we write to them, goes on, archives it, and we after it."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from tests.canonical import canonical_rows, difference
from tests.golden_tables import archive_of, unpack
from tests.interop.java_writes import SMALL, JavaWriter
from tests.interop.judges import JavaJudge

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.float64())]
)
COLUMNS = {"id": "string", "p": "string", "ts": "bigint", "v": "double"}
SIX = {"hoodie.write.table.version": "6"}
AS_SIX = {
    **SMALL,
    **SIX,
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
}
ARCHIVING = {
    **AS_SIX,
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def rows(keys: str, ts: int) -> list[dict[str, object]]:
    return [{"id": one, "p": "xy"[one > "b"], "ts": ts, "v": ts / 2} for one in keys]


def table_of(keys: str, ts: int) -> pa.Table:
    return pa.Table.from_pylist(rows(keys, ts), SCHEMA)


def assert_agree(java: JavaJudge, path: Path, found: dict[str, int]) -> None:
    ours = canonical_rows(Table(str(path)).read_arrow())
    assert {row["id"]: row["ts"] for row in ours} == found
    assert not difference(java.read(path, metadata=False), ours)
    assert java.validate(path) == {}


def made(path: Path) -> Table:
    return Table.create(str(path), SCHEMA, ["id"], ["p"], ["ts"], properties=SIX)


def test_java_and_we_write_a_table_of_version_6_in_turn(java: JavaJudge, disk_path: Path) -> None:
    path = disk_path / "t"
    table = made(path)
    table.upsert(table_of("abcd", 1))
    table.delete(["d"])
    assert_agree(java, path, {"a": 1, "b": 1, "c": 1})
    JavaWriter(java, path, AS_SIX).write(rows("ae", 2), "upsert", COLUMNS, {})
    assert_agree(java, path, {"a": 2, "b": 1, "c": 1, "e": 2})
    table.bulk_insert(table_of("f", 3))
    table.overwrite_partitions(table_of("b", 4))
    assert_agree(java, path, {"b": 4, "c": 1, "e": 2, "f": 3})
    JavaWriter(java, path, ARCHIVING).write(rows("b", 5), "upsert", COLUMNS, {})
    table.upsert(table_of("bc", 6))
    JavaWriter(java, path, ARCHIVING).write(rows("g", 7), "upsert", COLUMNS, {})
    for ts in (8, 9):
        table.upsert(table_of("g", ts))
    table.clean(commits_retained=1)
    assert table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    assert_agree(java, path, {"b": 6, "c": 6, "e": 2, "f": 3, "g": 9})
    assert table.config.version == 6
    assert_same_archive(java, path)
    # Java gives it a metadata table, and takes it away, as its settings say; so do we.
    with_metadata = {**AS_SIX, "hoodie.metadata.enable": "true"}
    JavaWriter(java, path, with_metadata).write(rows("h", 10), "upsert", COLUMNS, {})
    assert "files" in Table(str(path)).config.metadata_partitions
    table.upsert(table_of("h", 11), {"hoodie.metadata.enable": "false"})
    assert_agree(java, path, {"b": 6, "c": 6, "e": 2, "f": 3, "g": 9, "h": 11})
    JavaWriter(java, path, with_metadata).write(rows("h", 12), "upsert", COLUMNS, {})
    assert_agree(java, path, {"b": 6, "c": 6, "e": 2, "f": 3, "g": 9, "h": 12})
    # What we have left, archive and all, is Java's to upgrade.
    JavaWriter(java, path).write(rows("h", 13), "upsert", COLUMNS, {})
    assert Table(str(path)).config.version == 9
    assert_agree(java, path, {"b": 6, "c": 6, "e": 2, "f": 3, "g": 9, "h": 13})
    assert_same_archive(java, path)


def assert_same_archive(java: JavaJudge, path: Path) -> None:
    ours = Table(str(path)).history().timeline.archive.instants()
    theirs = [one for one in java.timeline(path)["archived"] if one["state"] == "COMPLETED"]
    assert ours
    assert [one.requested for one in ours] == [one["requested"] for one in theirs]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_java_goes_on_after_each_change_between_versions_9_and_6(
    type_: str, java: JavaJudge, disk_path: Path
) -> None:
    path = disk_path / "t"
    often = {"hoodie.metadata.compact.max.delta.commits": "2"}
    table = Table.create(str(path), SCHEMA, ["id"], ["p"], ["ts"], type=type_, properties=often)
    for ts in range(5):
        table.upsert(table_of("abcd"[ts % 2 :], ts))
    table.overwrite_partitions(table_of("a", 5))
    if type_ == "mor":
        table.compaction.schedule_and_run()
        table.clean(policy="KEEP_LATEST_FILE_VERSIONS", fileversions_retained=1)
    table.clean(commits_retained=1)
    assert table.archive(keep_min_commits=2, keep_max_commits=3, commits_retained=1)
    found = {"a": 5, "c": 4, "d": 4}
    table.change_version(6)
    assert_agree(java, path, found)
    assert_same_archive(java, path)
    writer = JavaWriter(java, path, AS_SIX)
    writer.write(rows("ae", 6), "bulk_insert" if type_ == "mor" else "upsert", COLUMNS, {})
    found |= {"a": 6, "e": 6} if type_ == "cow" else {"e": 6}
    if type_ == "mor":
        writer.write(rows("a", 6), "insert_overwrite", COLUMNS, {})
        found["a"] = 6
    assert_agree(java, path, found)
    table.change_version(9)
    table.upsert(table_of("c", 7))
    assert_agree(java, path, found | {"c": 7})
    assert_same_archive(java, path)
    JavaWriter(java, path).write(rows("cd", 8), "upsert", COLUMNS, {})
    assert_agree(java, path, found | {"c": 8, "d": 8})


def read_plainly(table: Table) -> list[str]:
    own = [one for one in table.schema.names if one != "_hoodie_file_name"]
    return sorted(map(str, canonical_rows(table.read_arrow(own))))


@pytest.mark.parametrize("name", ["v6_cow_archived", "v6_mor"])
def test_java_goes_on_after_the_upgrade_of_a_table_of_its_own(
    name: str, java: JavaJudge, disk_path: Path
) -> None:
    path = unpack(archive_of(name), disk_path)
    table = Table(str(path))
    own = [one for one in table.schema.names if not one.startswith("_hoodie_")]
    first, before = table.read_arrow(own).slice(0, 1).to_pylist(), read_plainly(table)
    table.change_version(9)
    assert read_plainly(table) == before
    ours = canonical_rows(table.read_arrow())
    for metadata in (True, False):
        assert not difference(java.read(path, metadata=metadata), ours)
    table.upsert(pa.Table.from_pylist([{**row, "ts": 10**15, "n": 777} for row in first]))
    ours = canonical_rows(table.read_arrow())
    assert [row["n"] for row in ours].count(777) == 1
    for metadata in (True, False):
        assert not difference(java.read(path, metadata=metadata), ours)
    assert java.validate(path) == {}
    if name == "v6_cow_archived":
        assert_same_archive(java, path)
