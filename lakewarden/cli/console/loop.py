"""The loop: statements come in, answers go out, until there are no more."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakewarden.cli.console.answers import answer, complaint, hush_query_errors
from lakewarden.cli.output import FORMATS, ResultTable
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.sql_ext.statements import split_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
