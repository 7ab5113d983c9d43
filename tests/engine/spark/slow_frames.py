"""Frames that hold a write up while Spark's workers make its files."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from tests.rfc.actors import until

DDL = "id string, p string, ts long, v double, name string"
# Less than half of what workers would hold it for; a busy machine needs some of it.
FREE_AFTER_SECONDS = 25.0


def slow_frame(spark: SparkSession, path: str) -> DataFrame:
    """Two rows in two parts; as soon as a write has begun, the second one takes for ever."""

    def held_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows and batch.column(0)[0].as_py() == "1" and is_writing(Path(path)):
                time.sleep(60)
            yield batch

    rows = spark.range(0, 2, 1, 2).selectExpr(
        "string(id) AS id", "'a' AS p", "1L AS ts", "0.5D AS v", "'n' AS name"
    )
    return rows.mapInArrow(held_up, DDL)


def is_writing(path: Path) -> bool:
    return any((path / ".hoodie/timeline").glob("*.inflight"))


def has_files(path: Path) -> bool:
    return any(path.glob("*.parquet"))


def seconds_to_let_go(path: str, write: Callable[[], object], *, makes_file: bool) -> float:
    """Call a write off while workers are at it; how long its caller was held after that."""
    table = Table(path)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(write)
        until(lambda: has_files(Path(path)) if makes_file else is_writing(Path(path)))
        (pending,) = table.timeline().pending()
        table.cancel(pending.requested, "It takes too long.", force=True)
        began = time.monotonic()
        error = answer.exception()
        seconds = time.monotonic() - began
    assert isinstance(error, Conflict), error
    assert error.code == "cancelled"
    until(lambda: not has_files(Path(path)))
    assert not table.timeline().pending()
    return seconds
