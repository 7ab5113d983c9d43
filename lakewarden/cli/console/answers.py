"""Answers: what a statement gives, and what is said when it fails."""

import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakewarden.cli.output import ResultTable
from lakewarden.engine.kernel.shown import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPLAINT_LINES = 4
_QUERY_LOGGER = "SQLQueryContextLogger"


def answer(spark: "SparkSession", statement: str) -> ResultTable | None:
    """The rows of a statement, or None for one that gives none."""
    frame = spark.sql(statement)
    return ResultTable(frame.columns, _rows(frame)) if frame.columns else None


def _rows(frame: "DataFrame") -> Iterator[Row]:
    for row in frame.toLocalIterator():
        yield row.asDict(recursive=True)


def hush_query_errors() -> None:
    """Keep PySpark's own record of an error, with the stack of the JVM, off the terminal."""
    if find_spec("pyspark.logger") is not None:
        logger = import_module("pyspark.logger").PySparkLogger.getLogger(_QUERY_LOGGER)
        logger.setLevel(logging.CRITICAL + 1)


def complaint(error: PySparkException) -> str:
    """One or a few lines for people: what Spark says, without the stack of any language."""
    text = error.getMessage() or str(error)
    lines = [line for line in text.split("\n\nJVM stacktrace")[0].splitlines() if line.strip()]
    return "\n".join(lines[:COMPLAINT_LINES])
