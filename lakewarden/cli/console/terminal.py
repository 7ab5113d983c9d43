"""The terminal: statements typed by people, with history and completion.

Completion: the words that may come next in a statement of ours.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from lakewarden.cli.console.loop import GOODBYES
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.registry import PROCEDURES, procedure_named
from lakewarden.sql_ext.statements import is_finished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STATEMENTS = (
    "CALL",
    "CREATE INDEX",
    "CREATE TABLE",
    "DELETE FROM",
    "DESCRIBE PROCEDURE",
    "DROP INDEX",
    "EXPLAIN",
    "INSERT INTO",
    "MERGE INTO",
    "REFRESH INDEX",
    "SELECT",
    "SHOW INDEXES FROM",
    "SHOW PROCEDURES",
    "SHOW TABLES",
    "UPDATE",
)
_WORD = re.compile(r"[\w.`]*$")
_IN_CALL = re.compile(r"\bcall\s+(?:\w+\.)*(?P<name>\w+)\s*\((?P<arguments>[^;]*)$", re.IGNORECASE)
_AFTER_CALL = re.compile(r"\bcall\s+(?:\w+\.)*\w*$", re.IGNORECASE)
_AFTER_TABLE_WORD = re.compile(
    r"\b(?:from|into|join|update|table|on|table\s*=>\s*')\s*[\w.`]*$", re.IGNORECASE
)


def candidates(text: str, tables: Callable[[], Iterable[str]]) -> Sequence[str]:
    """What may stand in the place of the last word of a text."""
    if _AFTER_CALL.search(text):
        return sorted(PROCEDURES)
    if _AFTER_TABLE_WORD.search(text):
        return sorted(tables())
    call = _IN_CALL.search(text)
    if call is not None:
        return _arguments(call["name"], call["arguments"])
    return STATEMENTS if not _before_word(text).strip() else ()


def _arguments(procedure: str, given: str) -> Sequence[str]:
    try:
        parameters = procedure_named(procedure).parameters
    except InvalidRequest:
        return ()
    names = [one.name for one in parameters if not re.search(rf"\b{one.name}\s*=>", given, re.I)]
    return [f"{name} => " for name in names]


def _before_word(text: str) -> str:
    return text[: _last_word(text)[1]]


def _last_word(text: str) -> tuple[str, int]:
    found = _WORD.search(text)
    return ("", len(text)) if found is None else (found[0], found.start())


class StatementCompleter(Completer):
    """Completes procedures, their arguments, tables and the first words of statements."""

    def __init__(self, tables: Callable[[], Iterable[str]]) -> None:
        self._tables = tables

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        text = document.text_before_cursor
        word, _ = _last_word(text)
        for candidate in candidates(text, self._tables):
            if candidate.lower().startswith(word.lower()):
                yield Completion(candidate, start_position=-len(word))


HISTORY = ".lakewarden_history"
PROMPT, MORE = "lakewarden> ", "         -> "


def typed(spark: "SparkSession") -> Iterator[str]:
    """What is typed, up to a semicolon each, until the end of input."""
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: MORE,
        key_bindings=_keys(),
        history=FileHistory(str(Path.home() / HISTORY)),
        completer=StatementCompleter(lambda: _tables(spark)),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
    )
    while True:
        try:
            yield session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _tables(spark: "SparkSession") -> Iterator[str]:
    for table in spark.catalog.listTables():
        yield table.name


@Condition
def _is_whole() -> bool:
    text = get_app().current_buffer.text
    return is_finished(text) or text.strip().lower() in GOODBYES


def _keys() -> KeyBindings:
    """Enter sends a statement with its semicolon, and begins a new line in one without."""
    keys = KeyBindings()

    @keys.add("enter", filter=_is_whole)
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
