"""Statements: where one ends and the next one begins in a text with several."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from lakewarden.engine.kernel.errors import InvalidRequest

# What `END` may close besides a block or a CASE; such words may mean other things, too.
_CLOSED_BY_NAME = frozenset({"IF", "WHILE", "LOOP", "REPEAT", "FOR"})


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement as it was written, without the semicolon behind it."""

    text: str
    # Where it begins and ends in the whole text.
    start: int
    end: int


def split_statements(text: str) -> Iterator[StatementText]:
    """The statements of a text; a script from BEGIN to END is one."""
    for tokens, _ in _runs(_tokens(text)):
        start, end = tokens[0].start, tokens[-1].end + 1
        yield StatementText(text[start:end], start, end)


def is_finished(text: str) -> bool:
    """Whether nothing is open at the end of a text: no quote, no script, no statement."""
    try:
        runs = list(_runs(_tokens(text)))
    except InvalidRequest:
        return False
    return not runs or runs[-1][1]


def _runs(tokens: Iterable[Token]) -> Iterator[tuple[list[Token], bool]]:
    """The tokens of each statement, and whether it ends with a semicolon."""
    run: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON and not _is_open(run):
            if run:
                yield run, True
            run = []
        else:
            run.append(token)
    if run:
        yield run, False


def _tokens(text: str) -> list[Token]:
    try:
        return list(Spark().tokenize(text))
    except TokenError as cause:
        raise InvalidRequest(
            "unfinished_statement",
            what="The text is not a complete SQL statement.",
            why=str(cause),
            now="Close the open quote or comment.",
        ) from None


def _is_open(tokens: list[Token]) -> bool:
    """Whether the tokens are a script that has not come to its END."""
    words = [token.text.upper() for token in tokens]
    if not _is_script(words):
        return False
    depth = 0
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in ("BEGIN", "CASE") and before != "END":
            depth += 1
        elif word == "END" and after not in _CLOSED_BY_NAME:
            depth -= 1
    return depth > 0


def _is_script(words: list[str]) -> bool:
    is_labelled = len(words) > 2 and words[1] == ":"
    return words[2 if is_labelled else 0 :][:1] == ["BEGIN"]
