"""The judge is able to judge: it passes healthy tables and sees each kind of damage."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden_tables import GoldenDocument, GoldenTable
from tests.interop.differences import JAVA_DEFECTS
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused

INDEXED = "mor_bloom_column_partition_stats"
WITH_RECORD_INDEX = "mor_record_index_global"


def newest_base_file(table: Path) -> Path:
    """The base file of the newest instant; of several the one that comes last by its partition."""
    files = table.glob("**/[0-9a-f]*.parquet")
    return max(files, key=lambda file: (file.name.rsplit("_", 1)[-1], file.as_posix()))


def change_column(file: Path, name: str, change: Callable[[object], object]) -> None:
    """Rewrite one column of a data file in place; its footer keeps what it said."""
    content = pq.read_table(file, partitioning=None)
    place = content.schema.get_field_index(name)
    values = [change(value) for value in content[name].to_pylist()]
    changed = content.set_column(
        place, content.schema.field(name), pa.array(values, content[name].type)
    )
    pq.write_table(changed, file)


@pytest.mark.parametrize("name", [INDEXED, WITH_RECORD_INDEX, "v6_mor"])
def test_a_healthy_table_has_no_findings(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    assert java.validate(golden(name)) == {}


@pytest.mark.parametrize("name", sorted(JAVA_DEFECTS))
def test_what_java_left_untrue_is_seen(name: str, java: JavaJudge, golden: GoldenTable) -> None:
    check, finding = JAVA_DEFECTS[name]
    assert finding in java.validate(golden(name), check)[check][0]


def test_a_file_that_nobody_lists_is_seen(java: JavaJudge, golden_copy: GoldenTable) -> None:
    table = golden_copy(INDEXED)
    file = newest_base_file(table)
    stranger = file.with_name("00000000" + file.name[8:])
    stranger.write_bytes(file.read_bytes())
    found = java.validate(table, "listing", "slices", "snapshot")
    assert set(found) == {"listing", "slices", "snapshot"}
    assert stranger.name in found["listing"][0]


def test_a_file_of_another_size_is_seen(java: JavaJudge, golden_copy: GoldenTable) -> None:
    table = golden_copy(INDEXED)
    change_column(newest_base_file(table), "name", lambda value: f"{value}, longer than it was")
    assert "listed with" in java.validate(table, "listing")["listing"][0]


def test_an_instant_that_does_not_parse_is_seen(java: JavaJudge, golden_copy: GoldenTable) -> None:
    table = golden_copy(INDEXED)
    newest = max((table / ".hoodie" / "timeline").glob("*.deltacommit"))
    newest.write_bytes(b"not Avro")
    assert "does not parse" in java.validate(table, "instants")["instants"][0]


def test_a_key_that_moved_away_from_the_record_index_is_seen(
    java: JavaJudge, golden_copy: GoldenTable
) -> None:
    table = golden_copy(WITH_RECORD_INDEX)
    change_column(newest_base_file(table), "_hoodie_record_key", lambda key: f"other {key}")
    found = java.validate(table, "record_index")["record_index"]
    assert [finding for finding in found if "in the index only" in finding]
    assert [finding for finding in found if "the index says None" in finding]


def test_values_beyond_their_statistics_are_seen(java: JavaJudge, golden_copy: GoldenTable) -> None:
    table = golden_copy(INDEXED)
    change_column(newest_base_file(table), "name", lambda value: f"zzz {value}")
    found = java.validate(table, "column_stats", "data_skipping")
    assert "does not cover" in found["column_stats"][0]
    assert "with data skipping" in found["data_skipping"][0]


def test_a_key_that_its_bloom_filter_denies_is_seen(
    java: JavaJudge, golden_copy: GoldenTable
) -> None:
    table = golden_copy(INDEXED)
    change_column(newest_base_file(table), "_hoodie_record_key", lambda key: f"other {key}")
    assert "denies" in java.validate(table, "bloom_filters")["bloom_filters"][0]


def test_a_filter_selects_rows(java: JavaJudge, golden: GoldenTable) -> None:
    rows = java.read(golden(INDEXED), where="id = 'k001'")
    assert [row["id"] for row in rows] == ["k001"]


def test_sql_changes_the_table_and_leaves_no_trace_in_the_catalog(
    java: JavaJudge, golden: GoldenTable, golden_copy: GoldenTable
) -> None:
    table, other = golden_copy("cow_timestamp_ntz"), golden("cow_virtual_keys_utc")
    assert java.sql(table, "DELETE FROM t WHERE true", "SELECT * FROM t") == []
    assert java.read(table) == []
    assert java.sql(other, "SELECT count(*) AS n FROM t") == [{"n": 6}]


def test_the_timeline_is_the_documented_one(
    java: JavaJudge, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    name = "mor_archived_lsm_levels"
    answer, document = java.timeline(golden(name)), golden_document(name)["timeline"]
    assert answer["active"] == document["active"]
    assert answer["archived"] == document["archived"]


def test_file_slices_are_the_documented_ones(
    java: JavaJudge, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    name = "mor_compaction_requested"
    answer, document = java.file_slices(golden(name)), golden_document(name)["fsview"]
    for partition, found in document["partitions"].items():
        latest = {one["file_id"]: one for one in answer["partitions"][partition]["latest"]}
        for file_id, slices in found["file_groups"].items():
            documented = slices[-1]["log_files"]
            assert latest[file_id]["log_files"][: len(documented)] == documented
    assert [file_id for _, file_id in answer["pending"]["compaction"]] == sorted(
        operation["file_id"] for operation in document["pending_compaction"]
    )


def test_a_question_that_java_refuses_is_an_error(java: JavaJudge, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="TableNotFound"):
        java.read(tmp_path)
