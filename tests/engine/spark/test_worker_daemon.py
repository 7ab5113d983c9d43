"""Quicker workers: they begin otherwise, and write the same.

All tests with a session of `tests/conftest.py` write with them; those at a server, without.
"""

import zipimport
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.sessions import WORKER_SETTINGS


def test_workers_of_a_session_with_the_settings_keep_what_they_read(spark: SparkSession) -> None:
    def beginning(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a worker does when it is to look for modules anew."""
        for _ in batches:
            yield pa.record_batch({"text": [zipimport.zipimporter.invalidate_caches.__name__]})

    found = spark.range(1).mapInArrow(beginning, "text string").toArrow()
    assert found.column(0).to_pylist() == ["keep_zips"]


def test_the_settings_are_handed_out_as_a_copy() -> None:
    lakewarden.spark_settings().clear()
    assert lakewarden.spark_settings() == dict(WORKER_SETTINGS)
