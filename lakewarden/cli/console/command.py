"""`lakewarden sql`: statements from an argument, a file, a pipe or a terminal."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lakewarden.cli.console.loop import Console
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.late_imports import typed_statements
from lakewarden.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCommand:
    """What a console is asked to do."""

    statements: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    # Where a Spark Connect server is, instead of a session in this process.
    remote: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    output: str = "table"
    limit: int | None = None


def run_sql(command: SqlCommand) -> bool:
    """Run what is asked for; whether all of it worked."""
    spark = open_session(command)
    try:
        console = Console(spark, command.output, command.limit)
        is_typed = not (command.statements or command.files) and sys.stdin.isatty()
        return console.run(_texts(command, spark), goes_on=is_typed) or is_typed
    finally:
        spark.stop()


def open_session(command: SqlCommand) -> "SparkSession":
    """A session in this process that knows our statements, or one at a server that does."""
    settings = dict(command.settings)
    if command.remote is None:
        quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        return session({"spark.log.level": "ERROR", **quiet, **settings})
    builder = import_module("pyspark.sql").SparkSession.builder.remote(command.remote)
    for key, value in settings.items():
        builder = builder.config(key, value)
    found: SparkSession = builder.getOrCreate()
    return found


def _texts(command: SqlCommand, spark: "SparkSession") -> Iterable[str]:
    if command.statements or command.files:
        return _given(command)
    if sys.stdin.isatty():
        return typed_statements(spark)
    return iter([sys.stdin.read()])


def _given(command: SqlCommand) -> Iterator[str]:
    yield from command.statements
    for name in command.files:
        try:
            yield Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            raise InvalidRequest(
                "unreadable_file",
                what=f"Lakewarden cannot read {name} as SQL.",
                why=str(cause),
                now="Name a text file with SQL statements.",
                file=name,
            ) from None
