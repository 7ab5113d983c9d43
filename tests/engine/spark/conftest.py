"""One small Spark session for all tests that need one."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from pyspark.sql import SparkSession

from lakewarden.java_home import java_home
from tests.engine.spark.small_session import SETTINGS

# The client of Spark Connect is no part of PySpark proper.
collect_ignore = [] if find_spec("grpc") else ["test_connect.py"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores that tries a task twice.

    Its time zone is not UTC, so that shifted values show.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(java_home()))
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        builder = SparkSession.builder.master("local[2,2]").appName("lakewarden-tests")
        session = builder.config(map=SETTINGS).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
