"""Table settings: what a session sets for tables, by Hudi's keys and ours."""

from pyspark.sql import SparkSession

_PREFIXES = ("hoodie.", "lakewarden.")


def table_settings(spark: SparkSession) -> dict[str, str]:
    """Each under its own key, also where it is set as one of Spark's."""
    plain = {key.removeprefix("spark."): value for key, value in spark.conf.getAll.items()}
    return {key: value for key, value in plain.items() if key.startswith(_PREFIXES)}
