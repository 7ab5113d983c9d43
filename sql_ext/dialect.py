"""The dialect: statements about indexes and compactions, which Spark has no usable grammar for.

Each is parsed into the call of a procedure, so that everything after this is a CALL like any other.
What is none of these is never parsed; what begins like one of these and goes on otherwise is an
error at the word where it does.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from lakewarden.sql_ext.session.answers import StatementError

# What older releases of Hudi called it.
_FUNC, _EXPR = "func", "expr"


class StatementTokenizer(Spark.Tokenizer):
    """Spark's, but no word makes the rest of a statement one opaque text."""

    COMMANDS: ClassVar[set[TokenType]] = set()


class StatementParser(SparkParser):
    """Parses one statement of ours, given its tokens."""

    # The name of the table, as soon as it is known: the statement may not be for us.
    table: str | None = None

    def parse_statement(self, tokens: list[Token], statement: str) -> exp.Expr:
        """The call that a statement stands for; `StatementError` where it can't be understood."""
        self.sql = statement
        self._tokens, self._tokens_size, self._index = tokens, len(tokens), -1
        self._advance()
        call = self._parse_first_words()
        if self._index < self._tokens_size:
            raise self._expected("the end of the statement")
        return call

    def _parse_first_words(self) -> exp.Expr:
        for words, parse in _STATEMENTS.items():
            if self._match_text_seq(*words):
                return parse(self)
        raise self._expected("one of Lakewarden's statements")

    def parse_create(self) -> exp.Expr:
        """CREATE INDEX [IF NOT EXISTS] name ON [TABLE] table [USING type] (columns) [OPTIONS]."""
        if_not_exists = self._match_text_seq("IF", "NOT", "EXISTS")
        name = self._name("the name of the index")
        table = self._on_table()
        using = self._name("the type of the index") if self._match_text_seq("USING") else None
        columns, of_columns = self._columns()
        options = self._options() if self._match_text_seq("OPTIONS") else {}
        return _call(
            "create_index",
            index_name=exp.Literal.string(name),
            table=table,
            columns=exp.array(*map(exp.Literal.string, columns), dialect=Spark),
            index_type=None if using is None else exp.Literal.string(using),
            if_not_exists=exp.true() if if_not_exists else None,
            options=_map(options),
            column_options=_map(of_columns),
        )

    def parse_drop(self) -> exp.Expr:
        """DROP INDEX [IF EXISTS] name ON [TABLE] table."""
        if_exists = self._match_text_seq("IF", "EXISTS")
        name = exp.Literal.string(self._name("the name of the index"))
        return _call(
            "drop_index",
            index_name=name,
            table=self._on_table(),
            if_exists=exp.true() if if_exists else None,
        )

    def parse_show(self) -> exp.Expr:
        """SHOW INDEXES FROM|IN [TABLE] table."""
        if not (self._match_text_seq("FROM") or self._match_text_seq("IN")):
            raise self._expected("FROM or IN")
        self._match_text_seq("TABLE")
        return _call("show_indexes", table=self._table())

    def parse_refresh(self) -> exp.Expr:
        """REFRESH INDEX name ON [TABLE] table."""
        name = exp.Literal.string(self._name("the name of the index"))
        return _call("refresh_index", index_name=name, table=self._on_table())

    def parse_run_compaction(self, operation: str, without_instant: str) -> exp.Expr:
        """RUN|SCHEDULE COMPACTION ON table|'path' [AT instant], as it was before there was CALL."""
        place = self._table_or_path()
        instant = self._number("an instant") if self._match_text_seq("AT") else None
        operation = operation if instant else without_instant
        return _call(
            "run_compaction",
            op=exp.Literal.string(operation),
            **place,
            instants=None if instant is None else exp.Literal.string(instant),
        )

    def parse_show_compaction(self) -> exp.Expr:
        """SHOW COMPACTION ON table|'path' [LIMIT number]."""
        place = self._table_or_path()
        limit = self._number("a number") if self._match_text_seq("LIMIT") else None
        return _call(
            "show_compaction", **place, limit=None if limit is None else exp.Literal.number(limit)
        )

    def _on_table(self) -> exp.Expr:
        if not self._match_text_seq("ON"):
            raise self._expected("ON and the name of a table")
        self._match_text_seq("TABLE")
        return self._table()

    def _table_or_path(self) -> dict[str, exp.Expr]:
        if self._match(TokenType.STRING):
            return {"path": exp.Literal.string(self._prev.text)}
        return {"table": self._table()}

    def _table(self) -> exp.Expr:
        parts = [_quoted(self._name("the name of a table"))]
        while self._match(TokenType.DOT):
            parts.append(_quoted(self._name("the rest of the name")))
        self.table = ".".join(parts)
        return exp.Literal.string(self.table)

    def _columns(self) -> tuple[list[str], dict[str, str]]:
        columns: list[str] = []
        options: dict[str, str] = {}
        self._open("the columns in parentheses")
        while True:
            columns.append(self._dotted("the name of a column"))
            if self._match_text_seq("OPTIONS"):
                options.update(self._options(options))
            if not self._match(TokenType.COMMA):
                break
        self._close()
        return columns, options

    def _options(self, known: Iterable[str] = ()) -> dict[str, str]:
        options: dict[str, str] = {}
        self._open("the options in parentheses")
        while True:
            at = self._curr
            key = self._dotted("the name of an option")
            key = _EXPR if key.lower() == _FUNC else key
            if key in options or key in known:
                raise self._expected("another option: this one is given twice", at)
            self._match(TokenType.EQ)
            options[key] = self._value()
            if not self._match(TokenType.COMMA):
                break
        self._close()
        return options

    def _value(self) -> str:
        sign = "-" if self._match(TokenType.DASH) else ""
        kinds = (TokenType.NUMBER,) if sign else _VALUES
        if not self._match_set(kinds):
            raise self._expected("a text, a number or a boolean")
        return sign + self._prev.text

    def _dotted(self, what: str) -> str:
        if self._match(TokenType.STRING):
            return self._prev.text
        parts = [self._name(what)]
        while self._match(TokenType.DOT):
            parts.append(self._name("the rest of the name"))
        return ".".join(parts)

    def _name(self, what: str) -> str:
        """A word or something in back-quotes; any word will do, as in Spark itself."""
        token = self._curr
        is_left = self._index < self._tokens_size
        is_name = token.token_type == TokenType.IDENTIFIER or token.text[:1].isidentifier()
        if not is_left or not is_name or token.token_type == TokenType.STRING:
            raise self._expected(what)
        self._advance()
        return token.text

    def _number(self, what: str) -> str:
        if not self._match(TokenType.NUMBER):
            raise self._expected(what)
        return self._prev.text

    def _open(self, what: str) -> None:
        if not self._match(TokenType.L_PAREN):
            raise self._expected(what)

    def _close(self) -> None:
        if not self._match(TokenType.R_PAREN):
            raise self._expected("a comma or a closing parenthesis")

    def _expected(self, what: str, at: Token | None = None) -> StatementError:
        """Point at a token, or behind the last one where there is none left."""
        is_end = at is None and self._index >= self._tokens_size
        token = self._tokens[-1] if is_end else at or self._curr
        offset = token.end + 1 if is_end else token.start
        word = "" if is_end else self.sql[token.start : token.end + 1]
        return StatementError(self.sql, offset, word, f"expected {what}")


_VALUES = (TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)
_STATEMENTS: Mapping[tuple[str, ...], Callable[[StatementParser], exp.Expr]] = {
    ("CREATE", "INDEX"): StatementParser.parse_create,
    ("DROP", "INDEX"): StatementParser.parse_drop,
    ("REFRESH", "INDEX"): StatementParser.parse_refresh,
    ("SHOW", "INDEXES"): StatementParser.parse_show,
    ("SHOW", "INDEX"): StatementParser.parse_show,
    ("SHOW", "COMPACTION", "ON"): StatementParser.parse_show_compaction,
    ("RUN", "COMPACTION", "ON"): lambda one: one.parse_run_compaction("execute", "run"),
    ("SCHEDULE", "COMPACTION", "ON"): lambda one: one.parse_run_compaction("schedule", "schedule"),
}


def first_words() -> Iterable[tuple[str, ...]]:
    """How the statements of this dialect begin."""
    return _STATEMENTS


class Dialect(Spark):
    """Spark's dialect with our statements."""

    class Tokenizer(StatementTokenizer):
        """The tokens of all statements."""


def _call(procedure: str, **arguments: exp.Expr | None) -> exp.Expr:
    given = [
        exp.Kwarg(this=exp.to_identifier(name, quoted=True), expression=value)
        for name, value in arguments.items()
        if value is not None
    ]
    return exp.Anonymous(this=procedure, expressions=given)


def _map(options: Mapping[str, str]) -> exp.Expr | None:
    if not options:
        return None
    pairs = [exp.Literal.string(text) for pair in options.items() for text in pair]
    return exp.Anonymous(this="map", expressions=pairs)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
