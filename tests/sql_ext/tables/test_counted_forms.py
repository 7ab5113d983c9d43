"""The page of statements counts what the stories of the tests have in them."""

from pathlib import Path

from tests.sql_ext.tables.stories import table

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"


def test_the_page_has_the_counts_of_the_stories() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
