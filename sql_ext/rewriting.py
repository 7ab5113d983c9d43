"""Rewriting: statements that Spark has no grammar for become calls of procedures."""

from collections.abc import Callable, Iterator, Sequence

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from lakewarden.sql_ext.dialect import Dialect, StatementParser, first_words
from lakewarden.sql_ext.session.answers import StatementError

CATALOG = "lakewarden.system."
# After these a statement begins, in a script.
_OPENERS = frozenset({";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_EXPLAIN_MODES = frozenset({"EXPLAIN", "EXTENDED", "FORMATTED", "CODEGEN", "COST"})

IsForeign = Callable[[str], bool]


def rewritten(text: str, is_foreign: IsForeign) -> str:
    """The text with our statements as calls; others, and those on others' tables, as they are."""
    try:
        tokens = Dialect().tokenize(text)
    except TokenError:
        # Spark says what is wrong with it.
        return text
    pieces, position = [], 0
    for statement in _statements(tokens):
        replacement = _replacement(text, statement, is_foreign)
        if replacement is not None:
            pieces += [text[position : statement[0].start], replacement]
            position = statement[-1].end + 1
    return "".join([*pieces, text[position:]])


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What may be statements: from where one can begin to the next semicolon."""
    begins = True
    for index, token in enumerate(tokens):
        word = token.text.upper() if token.token_type != TokenType.STRING else ""
        if begins and word in _EXPLAIN_MODES:
            continue
        if begins:
            yield _to_semicolon(tokens[index:])
        begins = word in _OPENERS


def _to_semicolon(tokens: Sequence[Token]) -> list[Token]:
    ends = (i for i, token in enumerate(tokens) if token.token_type == TokenType.SEMICOLON)
    return list(tokens[: next(ends, len(tokens))])


def _replacement(text: str, tokens: list[Token], is_foreign: IsForeign) -> str | None:
    words = [token.text.upper() for token in tokens[:3]]
    if words[:1] == ["CALL"]:
        return _with_parentheses(text, tokens)
    if not any(words[: len(first)] == list(first) for first in first_words()):
        return None
    parser = StatementParser(dialect=Dialect)
    try:
        call = parser.parse_statement(tokens, text)
    except StatementError:
        if parser.table is not None and is_foreign(parser.table):
            return None
        raise
    if parser.table is not None and is_foreign(parser.table):
        return None
    return f"CALL {CATALOG}{call.sql(dialect=Dialect, normalize_functions=False)}"


def _with_parentheses(text: str, tokens: list[Token]) -> str | None:
    """CALL and a name, and nothing else."""
    name = tokens[1:]
    is_name = all(
        (token.token_type == TokenType.DOT) == bool(i % 2) for i, token in enumerate(name)
    )
    if not name or not is_name or not len(name) % 2:
        return None
    return text[tokens[0].start : tokens[-1].end + 1] + "()"
