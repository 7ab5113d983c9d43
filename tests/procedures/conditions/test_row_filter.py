"""A filter keeps the rows whose condition is true, and points at a word that makes no sense."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.conditions.row_filter import row_filter
from tests.procedures.rows_to_filter import COLUMNS, CONDITIONS, ROWS


def kept(text: str) -> list[object]:
    meets = row_filter(text, COLUMNS)
    return [row[1] for row in ROWS if meets(row)]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("count > 2 and name like 'O%'", [3]),
        # Unknown is not true, and its opposite is not either.
        ("count > 2", [3, 10_000_000_000]),
        ("not count > 2", [-7, 0]),
        ("is_old or count < 100", [3, -7, 0, 10_000_000_000]),
        ("name is null", [None]),
        ("'2025' <= at and at < '2026'", [-7]),
        # A text keeps its digits where a number is meant, and is nothing where it has none.
        ("name > 2.5", [-7, 10_000_000_000]),
    ],
)
def test_rows_are_kept_where_the_condition_is_true(text: str, counts: list[object]) -> None:
    assert kept(text) == counts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nmae = 'x'", r"nmae.*\(at character 1\).*Did you mean 'name'"),
        ("count > 1 and sleep(3) = 1", r"sleep.*\(at character 15\)"),
        ("count in (select 1)", r"cannot use .*character 1"),
        ("exists(select 1)", "cannot use"),
        ("count >", "is not valid"),
        ("count > 1 name", r"name.*character 11"),
        ("count = 1; drop table x", "2 conditions"),
        ("count = 1 garbage(", "is not valid|can't be"),
        ("'open", "open quote|is not valid"),
        ("count", "number, but the filter needs something that is true or false"),
        ("parts = 'a'", "text.* compare with a list"),
        ("count and true", "number, but the filter needs truth value"),
        ("upper(name, name) = 'X'", "has 2 arguments"),
        ("upper(parts) = 'X'", "list, but the filter needs"),
        ("name rlike '('", "not a regular expression"),
        ("regexp_extract(name, 'Os', 3) = ''", "has no group 3"),
        ("count between symmetric 3 and 1", "cannot use"),
        ("t.count = 1", "no column"),
        ("lower(name) over () = 'x'", "cannot use"),
        ("current_date < at", "no column"),
        ("cast(name as binary) = 'x'", "cannot use"),
        ("at > interval 1 day", "cannot use"),
        ("case when true then 1 else 'x' end = 1", "text, but the filter needs number"),
        ("(" * 5000 + "true" + ")" * 5000, "too long, or nested too deeply|cannot use"),
        ("not " * 3000 + "true", "too long, or nested too deeply|cannot use"),
        ("", "0 conditions"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_word(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        list(map(row_filter(text, COLUMNS), ROWS))
    assert refused.value.code == "bad_filter"


def test_a_long_chain_of_alternatives_is_no_deep_one() -> None:
    chain = " or ".join(f"count = {number}" for number in range(800))
    assert kept(chain) == [3, 0]


_WORDS = some.sampled_from(
    "count name at parts notes is_old and or not in ( ) , = < > 'a' 1 1.5 null like rlike between"
    ' case when then else end cast as int date is upper size ; * [ ] -- ` " . :: select'.split()
)


@given(some.lists(_WORDS, max_size=12).map(" ".join))
def test_any_words_are_a_condition_or_a_refusal(text: str) -> None:
    with suppress(InvalidRequest):
        meets = row_filter(text, COLUMNS)
        assert all(meets(row) in (True, False) for row in ROWS)


@given(some.sampled_from(CONDITIONS), some.sampled_from(CONDITIONS))
def test_logic_keeps_its_laws(one: str, other: str) -> None:
    assert kept(f"not (({one}) and ({other}))") == kept(f"not ({one}) or not ({other})")
    assert kept(f"({one}) or ({other})") == kept(f"({other}) or ({one})")
