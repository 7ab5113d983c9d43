"""The terminal: statements typed by people, with history and completion."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from lakewarden.cli.console.completion import StatementCompleter
from lakewarden.cli.console.loop import GOODBYES
from lakewarden.sql_ext.statements import is_finished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
