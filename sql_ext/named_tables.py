"""Named tables: where the catalog of a session has a table, for those who open it from Python."""

import re
from collections.abc import Mapping
from itertools import dropwhile

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.procedures.declaring.caller import TableAddress
from lakewarden.procedures.declaring.permissions import Permissions
from lakewarden.sql_ext.installation import load_classes
from lakewarden.sql_ext.session.catalog_places import CatalogTable, place_of
from lakewarden.sql_ext.session.statement import Statement
from lakewarden.storage_options import storage_options

_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_DETAILS = "# Detailed Table Information"


def find_table(spark: SparkSession, name: str, settings: Mapping[str, str]) -> TableAddress:
    """Where a table is; a session of Spark Connect has to be asked in SQL."""
    if not isinstance(spark, SparkSession):
        return place_of(name, _described(spark, name), storage_options(settings))
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    load_classes(gateway)
    asking = gateway.jvm.io.lakewarden.spark.Statement.of(spark._jsparkSession)
    return Statement(asking, Permissions(), settings).place_of(name)


def _described(spark: SparkSession, name: str) -> CatalogTable:
    """Clients are not shown the options of its storage; these have to be the session's."""
    if not _NAME.fullmatch(name):
        return CatalogTable(unreadable=True)
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except PySparkException:
        return CatalogTable(known=())
    # Columns come first, and may be called anything.
    details = dropwhile(lambda row: row.col_name != _DETAILS, rows)
    reported = {row.col_name: row.data_type for row in details}
    if "Location" not in reported:
        return CatalogTable(known=())
    path = reported["Location"].removeprefix("file:")
    return CatalogTable(
        path=path, provider=reported.get("Provider", reported.get("Type", "")), properties={}
    )
