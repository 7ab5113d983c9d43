"""Writes a table in a session with the settings for workers, and prints how these begin.

Run as a process of its own, since a session's workers are what they were when it began.
"""

import sys
import zipimport
from collections.abc import Iterator

import pyarrow as pa

import lakewarden
from lakewarden import Table
from tests.small_session import SETTINGS
from tests.writing.shapes import Shape


def main(path: str) -> None:
    texts = {key: str(value) for key, value in SETTINGS.items()}
    spark = lakewarden.session({**texts, **lakewarden.spark_settings(), "spark.master": "local[2]"})
    frame = spark.range(40).selectExpr(
        "string(id) AS id", "'a' AS p", "id AS ts", "0.5D AS v", "'n' AS name"
    )
    Shape().create(path).upsert(frame, local_rows_max=0)
    found = spark.range(1).mapInArrow(_beginning, "text string").toArrow()
    print(len(Table(path).read_arrow()), found.column(0).to_pylist(), end="")
    spark.stop()


def _beginning(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker does when it is to look for modules anew."""
    for _ in batches:
        yield pa.record_batch({"text": [zipimport.zipimporter.invalidate_caches.__name__]})


if __name__ == "__main__":
    main(sys.argv[1])
