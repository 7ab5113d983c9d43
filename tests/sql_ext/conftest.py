"""One small Spark session with our statements, for all tests that need one."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import lakewarden

if not hasattr(PySparkException, "getCondition"):
    # PySpark 3.5 has it by another name.
    PySparkException.getCondition = lambda error: error.getErrorClass()

Run = Callable[..., list[Row]]
Refused = Callable[..., PySparkException]


@pytest.fixture(scope="session")
def sql_session(spark: SparkSession) -> SparkSession:
    """The session, after it has run something else."""
    spark.sql("SELECT 1").collect()
    return lakewarden.enable(spark)


@pytest.fixture(scope="session")
def run(sql_session: SparkSession) -> Run:
    """`run(statement)`: its rows."""

    def rows(statement: str, **parameters: object) -> list[Row]:
        return sql_session.sql(statement, parameters or None).collect()

    return rows


@pytest.fixture(scope="session")
def refused(run: Run) -> Refused:
    """`refused(statement)`: the error it ends with, which never shows a stack."""

    def error(statement: str, **parameters: object) -> PySparkException:
        with pytest.raises(PySparkException) as raised:
            run(statement, **parameters)
        text = str(raised.value)
        assert "Traceback" not in text
        assert "\tat " not in text
        assert "py4j" not in text.lower()
        return raised.value

    return error


@pytest.fixture(scope="session")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a small table, which no test changes."""
    path = tmp_path_factory.mktemp("lake") / "orders"
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    table = lakewarden.Table.create(str(path), schema, ["id"], type="mor")
    table.upsert(pa.table({"id": ["1", "2"], "city": ["Oslo", "Rome"]}))
    return path
