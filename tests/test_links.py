"""Pages lead to files and anchors that are there, and the map of the docs leads to every page."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.links import anchors, broken_links, linked_page, links
from tests.tidy import Page, pages_of

CHECKOUT = Path(__file__).parents[1]
MAP = PurePosixPath("docs/README.md")
GOLDEN_TABLE = re.compile(r"`((?:v\d+_)?(?:cow|mor)_[a-z0-9_]+)`")

pytestmark = pytest.mark.xdist_group("tidy")


@pytest.fixture(scope="module")
def pages() -> Mapping[PurePosixPath, Page]:
    """The Markdown pages of the checkout by their paths."""
    return {page.path: page for page in pages_of(CHECKOUT) if page.path.suffix == ".md"}


def of(path: str, text: str) -> Page:
    return Page(PurePosixPath(path), text)


def test_every_link_leads_somewhere(pages: Mapping[PurePosixPath, Page]) -> None:
    assert not list(broken_links(pages, CHECKOUT))


def test_the_map_leads_to_every_page_of_the_docs(pages: Mapping[PurePosixPath, Page]) -> None:
    mapped = {linked_page(pages[MAP], target) for target in links(pages[MAP])}
    assert {path for path in pages if path.is_relative_to("docs")} <= mapped | {MAP}


def test_golden_tables_that_the_format_names_are_there(
    pages: Mapping[PurePosixPath, Page],
) -> None:
    of_format = (page for path, page in pages.items() if path.is_relative_to("docs/format"))
    named = {name for page in of_format for name in GOLDEN_TABLE.findall(page.text)}
    assert named
    assert named <= {path.stem for path in (CHECKOUT / "tests/golden").rglob("*.zip")}


def test_tests_that_a_spark_is_not_run_with_are_there() -> None:
    lists = (CHECKOUT / "tests/compat").glob("spark-*.txt")
    lines = [line for one in lists for line in one.read_text().splitlines() if line[:1] != "#"]
    assert lines
    for line in lines:
        path, _, name = line.partition("::")
        assert f"def {name.partition('[')[0]}" in (CHECKOUT / path).read_text(), line


@pytest.mark.parametrize(
    "link", ["other.md", "../engine/nowhere.py", "#nowhere", "page.md#nowhere", "sub/page.md"]
)
def test_a_link_to_nowhere_is_seen(link: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").touch()
    page = of("docs/page.md", f"# Here\n\nSee [it]({link}).\n")
    assert len(list(broken_links({page.path: page}, tmp_path))) == 1


@pytest.mark.parametrize(
    "link", ["page.md", "../docs", "#here-it-is", "page.md#cook.wash", "#here-it-is-1", "http://a"]
)
def test_a_link_to_somewhere_is_none(link: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").touch()
    text = f'# Here, it `is`\n\n<a id="cook.wash"></a> [it]({link})\n\n## Here it is\n'
    page = of("docs/page.md", text)
    assert not list(broken_links({page.path: page}, tmp_path))


def test_code_has_no_links() -> None:
    page = of("a.md", "Say `[a](b)`:\n\n    [a](b)\n\n```\n[a](b)\n```\n\nor [c](d),\n[e\nf](g)\n")
    assert list(links(page)) == ["d", "g"]


def test_anchors_are_spelled_as_on_the_web() -> None:
    page = of("a.md", "# A: *b* and `c_d`\n\n```\n# no\n```\n\n## [Link](x.md)\n")
    assert anchors(page) == {"a-b-and-c_d", "link"}
