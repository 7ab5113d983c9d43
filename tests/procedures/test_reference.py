"""Help and the page of reference say what the declarations say."""

from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.binding import invoke
from lakewarden.procedures.reference import example
from lakewarden.procedures.reference_page import page
from lakewarden.procedures.registry import PROCEDURES
from tests.procedures.calls import call

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "procedures.md"


def test_the_page_is_what_the_declarations_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_procedure_has_a_section() -> None:
    headings = [line[4:] for line in page().splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(PROCEDURES)


def test_help_lists_all_procedures() -> None:
    rows = call("help")
    assert [row["name"] for row in rows] == list(PROCEDURES)
    assert all(row["result"].startswith(f"{row['name']}(") for row in rows)


def test_help_tells_arguments_columns_and_an_example() -> None:
    rows = call("help", "SHOW-TIMELINE")
    declared = PROCEDURES["show_timeline"]
    named = {kind: [row["name"] for row in rows if row["kind"] == kind] for kind in _KINDS}
    assert named["argument"] == [one.name for one in declared.parameters]
    assert named["column"] == [one.name for one in declared.columns]
    assert rows[-1]["result"] == "CALL show_timeline(table => 'orders')"
    (limit,) = (row for row in rows if row["name"] == "limit")
    assert (limit["default"], limit["type"], limit["is_required"]) == ("20", "BIGINT", False)


_KINDS = ("procedure", "argument", "column", "example")


def test_a_name_that_is_none_has_a_neighbour() -> None:
    with pytest.raises(InvalidRequest, match="Did you mean 'show_commits'"):
        call("help", "show_commit")


@pytest.mark.parametrize("name", PROCEDURES)
def test_examples_have_all_that_is_needed(name: str) -> None:
    text = example(PROCEDURES[name])
    assert text.startswith(f"CALL {name}(")
    for parameter in PROCEDURES[name].parameters:
        assert not parameter.is_required or f"{parameter.name} => " in text


def test_what_is_wrong_with_a_filter_is_said_before_anything_is_done() -> None:
    with pytest.raises(InvalidRequest, match="no column"):
        invoke(PROCEDURES["show_commits"], _Untouched(), (), {"path": "x", "filter": "nothing = 1"})


class _Untouched:
    """A caller that has nothing: whoever asks it for a table fails."""
