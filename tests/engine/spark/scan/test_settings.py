"""A setting is changed for a moment and nobody notices afterwards."""

import pytest
from pyspark.sql import SparkSession

from lakewarden.engine.spark.scan.frames import setting

pytestmark = pytest.mark.xdist_group("spark")

KEY = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def test_a_setting_that_was_not_made_is_unmade(spark: SparkSession) -> None:
    with setting(spark, KEY, "7"):
        assert spark.conf.get(KEY) == "7"
    assert spark.conf.get(KEY, None) is None


def test_a_setting_of_the_user_comes_back_even_after_an_error(spark: SparkSession) -> None:
    spark.conf.set(KEY, "5")
    try:
        with pytest.raises(ZeroDivisionError), setting(spark, KEY, "7"):
            _ = 1 / 0
        assert spark.conf.get(KEY) == "5"
    finally:
        spark.conf.unset(KEY)
