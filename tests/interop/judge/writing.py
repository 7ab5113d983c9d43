"""Java as a writer: rows written through the DataFrame writer."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession


def write(
    spark: SparkSession,
    table: str,
    *,
    rows: Sequence[Mapping[str, object]],
    columns: Mapping[str, str],
    options: Mapping[str, str],
) -> None:
    """Append rows, whose columns have the given SQL types, as the options say."""
    schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    values = [tuple(row[name] for name in columns) for row in rows]
    frame = spark.createDataFrame(values, schema).coalesce(1)
    frame.write.format("hudi").options(**options).mode("append").save(table)
