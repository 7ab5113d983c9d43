"""DataFrameWriters that name a table of ours write to it as INSERT does, and know its options."""

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.sql_ext.tables.conftest import COLUMNS, Make, Row

pytestmark = pytest.mark.xdist_group("spark")

Save = Callable[[DataFrame, str, dict[str, str]], None]
NEW = (9, "nine", 90, "Rome")


def save_as_table(frame: DataFrame, name: str, options: dict[str, str]) -> None:
    frame.write.format("lakewarden").options(**options).mode("append").saveAsTable(name)


def write_to(frame: DataFrame, name: str, options: dict[str, str]) -> None:
    frame.writeTo(name).options(**options).append()


def overwrite_partitions(frame: DataFrame, name: str, options: dict[str, str]) -> None:
    frame.writeTo(name).options(**options).overwritePartitions()


@pytest.fixture(scope="module")
def frame(sql_session: SparkSession) -> DataFrame:
    return sql_session.createDataFrame([NEW], COLUMNS)


@pytest.mark.parametrize("save", [save_as_table, write_to])
def test_rows_of_a_frame_are_added(
    frame: DataFrame, make: Make, stored: Callable[[str], list[Row]], save: Save
) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo')")
    save(frame, name, {"hoodie.spark.sql.insert.into.operation": "upsert"})
    save(frame, name, {"hoodie.spark.sql.insert.into.operation": "upsert"})
    assert stored(name) == [(1, "a", 1, "Oslo"), NEW]


@pytest.mark.parametrize("save", [save_as_table, write_to, overwrite_partitions])
def test_options_that_mean_nothing_are_refused(
    frame: DataFrame, make: Make, stored: Callable[[str], list[Row]], save: Save
) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo')")
    with pytest.raises(PySparkException, match=r"Did you mean 'hoodie.clean.policy'\?") as refused:
        save(frame, name, {"hoodie.clean.polcy": "x"})
    assert refused.value.getCondition() == "LAKEWARDEN_UNKNOWN_OPTION"
    assert refused.value.getSqlState() == "42000"
    assert "Traceback" not in str(refused.value)
    assert stored(name) == [(1, "a", 1, "Oslo")]


def test_a_frame_puts_no_other_table_in_the_place_of_one(
    frame: DataFrame, make: Make, stored: Callable[[str], list[Row]]
) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo')")
    with pytest.raises(PySparkException) as refused:
        frame.write.format("lakewarden").mode("overwrite").saveAsTable(name)
    assert refused.value.getCondition() == "LAKEWARDEN_UNSUPPORTED_REPLACE_TABLE"
    assert stored(name) == [(1, "a", 1, "Oslo")]
