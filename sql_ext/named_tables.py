"""Named tables: where the catalog of a session has a table, for those who open it from Python."""

import re
from collections.abc import Mapping
from itertools import dropwhile

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.procedures.caller import Place
from lakewarden.procedures.permissions import Permissions
from lakewarden.sql_ext.catalog_places import Found, place_of
from lakewarden.sql_ext.installation import load_classes
from lakewarden.sql_ext.statement import Statement
from lakewarden.storage_options import storage_options

_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_DETAILS = "# Detailed Table Information"


def find_table(spark: SparkSession, name: str, settings: Mapping[str, str]) -> Place:
    """Where a table is; a session of Spark Connect has to be asked in SQL."""
    if not isinstance(spark, SparkSession):
        return place_of(name, _described(spark, name), storage_options(settings))
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    load_classes(gateway)
    asking = gateway.jvm.io.lakewarden.spark.Statement.of(spark._jsparkSession)
    return Statement(asking, Permissions(), settings).place_of(name)


def _described(spark: SparkSession, name: str) -> Found:
    """Clients are not shown the options of its storage; these have to be the session's."""
    if not _NAME.fullmatch(name):
        return Found(unreadable=True)
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return Found(known=())
    # Columns come first, and may be called anything.
    details = dropwhile(lambda row: row.col_name != _DETAILS, rows)
    told = {row.col_name: row.data_type for row in details}
    if "Location" not in told:
        return Found(known=())
    path = told["Location"].removeprefix("file:")
    return Found(path=path, provider=told.get("Provider", told.get("Type", "")), properties={})
