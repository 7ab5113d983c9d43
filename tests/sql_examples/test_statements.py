"""Texts fall apart into statements where people would part them."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.statements import is_finished, split_statements

SCRIPT = """BEGIN
  DECLARE n INT DEFAULT 1;
  IF n > 0 THEN SELECT CASE WHEN n = 1 THEN 'one' END; END IF;
  WHILE n < 3 DO SET n = n + 1; END WHILE;
END"""


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; -- nothing\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';' ; -- a; b\n SELECT `a;b`;", ["SELECT ';'", "SELECT `a;b`"]),
        ("CALL a(x => 'it''s', y => \"p;q\");", ["CALL a(x => 'it''s', y => \"p;q\")"]),
        (f"{SCRIPT}; SELECT 2", [SCRIPT, "SELECT 2"]),
        ("/* ; */ SELECT 'a\\';b'; SELECT 2", ["SELECT 'a\\';b'", "SELECT 2"]),
        ("BEGIN SELECT 1; END; SELECT 2;", ["BEGIN SELECT 1; END", "SELECT 2"]),
    ],
)
def test_semicolons_part_statements(text: str, statements: list[str]) -> None:
    found = list(split_statements(text))
    assert [one.text for one in found] == statements
    assert [text[one.start : one.end] for one in found] == statements


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT 'a;", "BEGIN SELECT 1;", "/* x", "CALL x("])
def test_what_is_open_is_not_finished(text: str) -> None:
    assert not is_finished(text)


@pytest.mark.parametrize("text", ["", "SELECT 1;", f"{SCRIPT};", "SELECT 1; -- done"])
def test_what_ends_with_a_semicolon_is_finished(text: str) -> None:
    assert is_finished(text)


def test_a_quote_that_stays_open_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="quote or comment"):
        list(split_statements("SELECT 'a; SELECT 2;"))
