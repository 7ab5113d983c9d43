"""Table functions of a small table, in a Spark session that is warm."""

import tempfile
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

import lakewarden
from bench.measure import Measure, clocked, in_turns, within
from bench.spark_reader import CONFIGURATION
from lakewarden.sql_ext.table_functions import TABLE_FUNCTIONS

COMMITS = 5
AT_MOST_MS = 300


def run() -> list[Measure]:
    """Each function, as a query that takes all of its rows."""
    local = {"spark.master": "local[2]", "spark.log.level": "ERROR"}
    spark = lakewarden.session({**CONFIGURATION, **lakewarden.spark_settings(), **local})
    with tempfile.TemporaryDirectory() as folder:
        path = _table(f"{folder}/orders")
        asked = {name: clocked(partial(_ask, spark, name, path)) for name in TABLE_FUNCTIONS}
        rounds = in_turns(asked, rounds=7)
    spark.stop()
    return [
        within(
            name,
            rounds,
            at_most_ms=AT_MOST_MS,
            includes=f"`SELECT * FROM {name}(path)` for a table of {COMMITS} commits and a plan",
            ours=name,
        )
        for name in TABLE_FUNCTIONS
    ]


def _table(path: str) -> str:
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    table = lakewarden.Table.create(path, schema, ["id"], type="mor")
    rows = pa.table({"id": [str(n) for n in range(100)], "city": ["Oslo"] * 100}, schema=schema)
    for _ in range(COMMITS):
        table.upsert(rows)
    table.compaction.schedule()
    return path


def _ask(spark: SparkSession, name: str, path: str) -> None:
    spark.sql(f"SELECT * FROM {name}('{path}')").collect()
