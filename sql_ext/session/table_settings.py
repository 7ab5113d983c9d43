"""Table settings: what a session sets for tables, by Hudi's keys and ours."""

from pyspark.sql import SparkSession

from lakewarden.engine.spark.workers.older_sparks import all_settings
from lakewarden.engine.storage.s3 import HADOOP
from lakewarden.storage_options import PREFIX

_PREFIXES = ("hoodie.", "lakewarden.")


def table_settings(spark: SparkSession) -> dict[str, str]:
    """Each under its own key, also where it is set as one of Spark's."""
    plain = {key.removeprefix("spark."): value for key, value in all_settings(spark).items()}
    settings = {key: value for key, value in plain.items() if key.startswith(_PREFIXES)}
    # What Spark itself reaches S3 with, set for Hadoop or in the session.
    for key, value in plain.items():
        name = key.removeprefix("hadoop.")
        if name.startswith(HADOOP):
            settings.setdefault(f"{PREFIX}{name}", value)
    return settings
