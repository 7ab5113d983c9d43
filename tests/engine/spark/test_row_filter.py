"""A row filter keeps the rows that Spark keeps."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from lakewarden.procedures.conditions.row_filter import row_filter
from tests.procedures.rows_to_filter import COLUMNS, CONDITIONS, ROWS

# Ours are times in UTC, and texts that make no sense are null rather than an error.
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.mark.xdist_group("spark")
def test_conditions_are_true_where_spark_says_so(spark: SparkSession) -> None:
    session = spark.newSession()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    schema = StructType.fromDDL(", ".join(f"`{one.name}` {one.type}" for one in COLUMNS))
    frame = session.createDataFrame(list(ROWS), schema)
    answers = frame.select([expr(f"coalesce({text}, false)") for text in CONDITIONS]).collect()
    by_spark = {
        text: [bool(row[place]) for row in answers] for place, text in enumerate(CONDITIONS)
    }
    ours = {text: list(map(row_filter(text, COLUMNS), ROWS)) for text in CONDITIONS}
    assert ours == by_spark
