"""What Java reads: the rows of a snapshot, a moment, a window, base files only, or of SQL."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from tests.canonical import Row, canonical_rows

QUERY_TYPE = "hoodie.datasource.query.type"


def frame(
    spark: SparkSession,
    table: str,
    *,
    metadata: bool = True,
    read_optimized: bool = False,
    as_of: str | None = None,
    window: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A read of the table. A window is (begin exclusive, end inclusive)."""
    settings = {"hoodie.metadata.enable": str(metadata).lower()}
    if read_optimized:
        settings[QUERY_TYPE] = "read_optimized"
    if as_of is not None:
        settings["as.of.instant"] = as_of
    if window is not None:
        begin, end = window
        settings[QUERY_TYPE] = "incremental"
        settings["hoodie.datasource.read.begin.instanttime"] = begin
        settings["hoodie.datasource.read.end.instanttime"] = end
    return spark.read.format("hudi").options(**settings, **(options or {})).load(table)


def rows_of(answer: DataFrame) -> list[Row]:
    """Canonical rows of a frame."""
    rows = [row.asDict(recursive=True) for row in answer.collect()]
    return canonical_rows(pa.Table.from_pylist(rows, to_arrow_schema(answer.schema)))


def read(spark: SparkSession, table: str, *, where: str | None = None, **how: object) -> list[Row]:
    """Canonical rows of the table that fulfil `where`; for `how` see `frame`."""
    answer = frame(spark, table, **how)
    return rows_of(answer if where is None else answer.where(where))


def sql(
    spark: SparkSession,
    table: str,
    statements: Sequence[str],
    *,
    settings: Mapping[str, str] | None = None,
) -> list[Row]:
    """Run statements on the table, which they call `t`; canonical rows of the last one.

    Settings hold for these statements only. Creating a catalog entry over an existing table and
    dropping it leave the table itself alone.
    """
    for name, value in (settings or {}).items():
        spark.conf.set(name, value)
    spark.sql(f"CREATE TABLE t USING hudi LOCATION '{table}'")
    try:
        rows: list[Row] = []
        for statement in statements:
            rows = rows_of(spark.sql(statement))
        return rows
    finally:
        spark.sql("DROP TABLE t")
        for name in settings or ():
            spark.conf.unset(name)
