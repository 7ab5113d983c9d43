"""Cores: how many tasks a session can run at the same time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES_WHEN_UNKNOWN = 8


def cores_of(spark: "SparkSession") -> int:
    """The cores of the cluster; a Connect session does not tell them."""
    context = getattr(spark, "sparkContext", None)
    return CORES_WHEN_UNKNOWN if context is None else int(context.defaultParallelism)
