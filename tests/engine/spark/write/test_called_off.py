"""A write that Spark's workers carry out is called off: its caller is free, and no file stays."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.spark.slow_frames import FREE_AFTER_SECONDS, seconds_to_let_go, slow_frame
from tests.rfc.actors import until
from tests.small_session import status_of
from tests.writing.shapes import Shape

pytestmark = pytest.mark.xdist_group("spark")


def test_a_cancelled_write_lets_go_of_its_caller(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = Shape("cow", is_partitioned=False, has_metadata=False).create(path)
    frame = slow_frame(spark, path)
    seconds = seconds_to_let_go(
        path, lambda: table.bulk_insert(frame, local_rows_max=0), makes_file=True
    )
    assert seconds < FREE_AFTER_SECONDS
    until(lambda: status_of(spark).getActiveJobsIds() == [])
