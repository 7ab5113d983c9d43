"""Procedures in a session: large plans go to Spark's workers, small ones to threads."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden import Table
from lakewarden.procedures.declaring.caller import PlainCaller
from tests.all_kinds import differences
from tests.engine.services.service_table import MOR, inserted, updated
from tests.procedures.calls import call, call_one
from tests.small_session import status_of
from tests.writing.shapes import carry_out


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(("bytes_min", "is_far"), [(0, True), (1 << 30, False)])
def test_the_bytes_of_a_plan_decide_who_carries_it_out(
    spark: SparkSession, tmp_path: Path, bytes_min: int, *, is_far: bool
) -> None:
    path = str(tmp_path / "table")
    table = MOR.create(path)
    for write in (inserted(), updated(ts=2)):
        carry_out(table, write)
    settings = {"lakewarden.services.spark_bytes_min": str(bytes_min)}
    row = call_one("run_compaction", path=path, caller=PlainCaller(spark=spark, settings=settings))
    assert (row["state"], row["rows_written_count"]) == ("COMPLETED", 6)
    jobs = status_of(spark).getJobIdsForGroup(str(row["timestamp"]))
    assert bool(jobs) == is_far
    assert table.read_arrow().num_rows == 6
    _builds_indexes(table, spark, path, settings, is_far=is_far)


def _builds_indexes(
    table: Table, spark: SparkSession, path: str, settings: dict[str, str], *, is_far: bool
) -> None:
    """The same for builds of indexes, of every way to read a table."""
    table.build_index("record_index", ["id"], op="schedule")
    table.build_index("bloom_filters", op="schedule")
    caller = PlainCaller(spark=spark, settings=settings)
    before = len(status_of(spark).getJobIdsForGroup("indexing"))
    rows = call("run_indexing", path=path, caller=caller)
    assert len(rows) == 2
    table.build_index("by_name", ["name"], "secondary_index", op="schedule")
    call("run_indexing", path=path, caller=caller)
    jobs = status_of(spark).getJobIdsForGroup("indexing")
    assert (len(jobs) > before) == is_far
    assert differences(table) == []
    assert table.lookup(["k1"]).num_rows == 1
