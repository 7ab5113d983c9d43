"""Late imports: the modules that are loaded when a call first needs them, and why.

They need PySpark or the console's libraries, or stand above their callers. Each function has one
reason; `import lakewarden` loads none of them. No other module imports ours by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource


class NamedTable(Protocol):
    """Where a catalog has a table."""

    @property
    def path(self) -> str: ...

    @property
    def storage_options(self) -> Mapping[str, object]: ...


def install_sql(spark: "SparkSession", settings: Mapping[str, str]) -> None:
    """Add our statements and functions to a session; needs PySpark, and calls the front door."""
    import_module("lakewarden.sql_ext.installation").install(spark, settings)


def spark_source() -> "type[DataSource]":
    """The format `lakewarden`; its class derives from one of PySpark's."""
    source: type[DataSource] = import_module("lakewarden.data_source").LakewardenSource
    return source


def table_settings(spark: "SparkSession") -> Mapping[str, str]:
    """What a session sets for tables; needs PySpark."""
    found: Mapping[str, str] = import_module(
        "lakewarden.sql_ext.session.table_settings"
    ).table_settings(spark)
    return found


def find_named_table(spark: "SparkSession", name: str, settings: Mapping[str, str]) -> NamedTable:
    """The table that a catalog has by a name; needs PySpark."""
    found: NamedTable = import_module("lakewarden.sql_ext.named_tables").find_table(
        spark, name, settings
    )
    return found


def run_console(arguments: Sequence[str]) -> bool:
    """`lakewarden sql`, whether all of it worked; no other command needs Spark."""
    command = import_module("lakewarden.cli.console.arguments").parse_sql(arguments)
    return bool(import_module("lakewarden.cli.console.loop").run_sql(command))


def run_server(arguments: Sequence[str]) -> None:
    """`lakewarden serve`; no other command needs a server."""
    options = import_module("lakewarden.cli.console.arguments").parse_serve(arguments)
    import_module("lakewarden.sql_ext.server.serving").serve(options)


def typed_statements(spark: "SparkSession") -> Iterator[str]:
    """Statements as a user types them; only a terminal needs what draws prompts."""
    found: Iterator[str] = import_module("lakewarden.cli.console.terminal").typed(spark)
    return found
