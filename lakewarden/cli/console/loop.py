"""The loop: statements come in, answers go out, until there are no more.

Answers: what a statement gives, and what is said when it fails.

`lakewarden sql`: statements from an argument, a file, a pipe or a terminal.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakewarden.cli.output import FORMATS, ResultTable
from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.kernel.shown import Row
from lakewarden.engine.spark.workers.older_sparks import message_of
from lakewarden.late_imports import typed_statements
from lakewarden.sessions import session
from lakewarden.sql_ext.statements import split_statements

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
    lines = [
        line
        for line in message_of(error).split("\n\nJVM stacktrace")[0].splitlines()
        if line.strip()
    ]
    return "\n".join(lines[:COMPLAINT_LINES])


GOODBYES = frozenset({"exit", "quit", r"\q"})
HELP = (
    "A statement ends with a semicolon, and may have several lines.",
    "  SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE TABLE ... USING lakewarden",
    "  CREATE INDEX by_key ON orders USING record_index (id);",
    "  CALL help();                        all procedures",
    "  DESCRIBE PROCEDURE run_compaction;  what one takes and gives",
    "  CALL show_plans(table => 'orders'); a table by its name or path",
    "  exit;                               leave",
)


@dataclass(frozen=True, slots=True)
class Console:
    """A session, and how its answers are shown."""

    spark: "SparkSession"
    output: str = "table"
    limit: int | None = None
    show: Callable[[str], None] = print

    def run(self, texts: Iterable[str], *, goes_on: bool) -> bool:
        """Run the statements of some texts; whether all of them worked.

        At a terminal an error is shown and the next statement is asked for; in a file or an
        argument it ends everything, as what comes next was written for the case that it works.
        """
        hush_query_errors()
        went_well = True
        for text in texts:
            if text.strip().rstrip(";").lower() in GOODBYES:
                break
            if text.strip().rstrip(";").lower() == "help":
                for line in HELP:
                    self.show(line)
                continue
            if not self._run_text(text):
                went_well = False
                if not goes_on:
                    break
        return went_well

    def _run_text(self, text: str) -> bool:
        try:
            for statement in split_statements(text):
                for line in self._lines(statement.text):
                    self.show(line)
        except PySparkException as error:
            print(complaint(error), file=sys.stderr)
            return False
        except LakewardenError as error:
            print(f"[{error.code.upper()}] {error}", file=sys.stderr)
            return False
        except KeyboardInterrupt:
            self._stop_jobs()
            print("Interrupted.", file=sys.stderr)
            return False
        return True

    def _lines(self, statement: str) -> Iterator[str]:
        found = answer(self.spark, statement)
        if found is not None:
            rows = islice(found.rows, self.limit)
            yield from FORMATS[self.output](ResultTable(found.columns, rows))

    def _stop_jobs(self) -> None:
        """What an interrupted statement has started must not go on behind the prompt."""
        self.spark.interruptAll()


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
