"""What an older Spark lacks is done with what it has, and gives the same."""

from datetime import UTC, datetime
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.older_sparks import (
    OLDEST_TO_SERVE,
    arrow_of,
    check_spark,
    frame_of,
    placed_by,
    spark_version,
)


class Older:
    """A frame as PySpark 3.5 has it: without what came later."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def __getattr__(self, name: str) -> object:
        if name in ("toArrow", "repartitionById"):
            raise AttributeError(name)
        return getattr(self._frame, name)


def older(frame: DataFrame) -> DataFrame:
    return cast(DataFrame, Older(frame))


@pytest.mark.xdist_group("spark")
def test_rows_come_as_arrow_from_any_spark(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, None)], "id int, name string")
    assert arrow_of(older(frame)).to_pylist() == arrow_of(frame).to_pylist()
    nothing = frame.where("id > 5")
    assert arrow_of(older(nothing)).schema.names == ["id", "name"]
    assert arrow_of(older(nothing)).num_rows == 0


class OlderSession:
    """A session that says to be PySpark 3.5, whose createDataFrame does not know Arrow."""

    version = "3.5.9"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> object:
        if name == "createDataFrame":
            raise AttributeError(name)
        return getattr(self._session, name)


@pytest.mark.xdist_group("spark")
def test_frames_are_made_of_arrow_with_any_spark(spark: SparkSession) -> None:
    moment = datetime(2026, 11, 18, 10, 15, tzinfo=UTC)
    maps = pa.map_(pa.string(), pa.int64())
    rows = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "seen": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "counts": pa.array([{"a": 1}, {}], maps),
            "parts": [[{"name": "x"}], None],
        }
    )
    for schema in (
        None,
        "id BIGINT, seen TIMESTAMP, counts MAP<STRING, BIGINT>, parts ARRAY<STRUCT<name: STRING>>",
    ):
        older_frame = frame_of(cast(SparkSession, OlderSession(spark)), rows, schema)
        frame = frame_of(spark, rows, schema)
        assert older_frame.schema == frame.schema
        assert older_frame.collect() == frame.collect()


@pytest.mark.xdist_group("spark")
def test_rows_go_to_the_partition_that_they_name_in_any_spark(spark: SparkSession) -> None:
    count = 5
    rows = spark.range(100).selectExpr(f"cast(id % {count} as int) as place")
    placed = placed_by(older(rows), count, "place")
    found = placed.selectExpr("place", "spark_partition_id() as there").distinct().collect()
    assert sorted((row.place, row.there) for row in found) == [(one, one) for one in range(count)]


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8", "3.5.7"])
def test_a_spark_that_is_too_old_is_refused_in_a_sentence(version: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"This is Spark {version}.*needs 4\.0") as refused:
        check_spark(version, OLDEST_TO_SERVE)
    assert refused.value.code == "old_spark"


def test_versions_of_vendors_count_by_their_first_two_numbers() -> None:
    assert spark_version("3.5.7-amzn-0") == (3, 5)
    assert spark_version("4.0.1") == OLDEST_TO_SERVE
