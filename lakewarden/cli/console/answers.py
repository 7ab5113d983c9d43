"""Answers: what a statement gives, and what is said when it fails."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakewarden.cli.output import ResultTable
from lakewarden.engine.kernel.shown import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def answer(spark: "SparkSession", statement: str) -> ResultTable | None:
    """The rows of a statement, or None for one that gives none."""
    frame = spark.sql(statement)
    return ResultTable(frame.columns, _rows(frame)) if frame.columns else None


def _rows(frame: "DataFrame") -> Iterator[Row]:
    for row in frame.toLocalIterator():
        yield row.asDict(recursive=True)


def complaint(error: PySparkException) -> str:
    """One or a few lines for people: what Spark says, without the stack of any language."""
    text = error.getMessage() or str(error)
    lines = [line for line in text.split("\n\nJVM stacktrace")[0].splitlines() if line.strip()]
    return "\n".join(lines)
