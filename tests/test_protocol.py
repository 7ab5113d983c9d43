"""The steps that docstrings name are those that docs/protocol.md explains, and none is skipped."""

from pathlib import Path, PurePosixPath

import pytest

from tests.protocol_steps import (
    docstrings,
    explained_steps,
    listed_steps,
    named_steps,
    numbers_steps,
)
from tests.tidy import Page, pages_of

CHECKOUT = Path(__file__).parents[1]
CODE = ("engine", "lakewarden", "procedures", "sql_ext")

pytestmark = pytest.mark.xdist_group("tidy")


@pytest.fixture(scope="module")
def texts() -> tuple[str, ...]:
    """The docstrings of all code."""
    code = (page for page in pages_of(CHECKOUT) if page.is_python and page.path.parts[0] in CODE)
    return tuple(text for page in code for text in docstrings(page))


@pytest.fixture(scope="module")
def explained() -> list[str]:
    """The steps of the page, in their order."""
    return explained_steps((CHECKOUT / "docs/protocol.md").read_text(encoding="utf-8"))


def operation_of(step: str) -> str:
    return step.partition(".")[0]


def test_every_step_of_the_code_is_explained_and_the_other_way_round(
    texts: tuple[str, ...], explained: list[str]
) -> None:
    assert sorted(step for text in texts for step in listed_steps(text)) == sorted(explained)


def test_every_step_is_explained_once(explained: list[str]) -> None:
    assert len(explained) == len(set(explained))


def test_the_page_has_the_steps_in_the_order_of_the_code(
    texts: tuple[str, ...], explained: list[str]
) -> None:
    for text in texts:
        listed = listed_steps(text)
        operations = {operation_of(step) for step in listed}
        assert listed == [step for step in explained if operation_of(step) in operations]


def test_docstrings_refer_only_to_steps_that_are_explained(
    texts: tuple[str, ...], explained: list[str]
) -> None:
    operations = {operation_of(step) for step in explained}
    named = {step for text in texts for step in named_steps(text, operations)}
    assert named <= set(explained)


def test_steps_have_names_and_no_numbers(texts: tuple[str, ...]) -> None:
    assert not [text for text in texts if numbers_steps(text)]


def test_numbered_steps_are_seen() -> None:
    assert numbers_steps("Steps: 1 wash, 2 boil.")
    assert numbers_steps("Step 2, under the lock.")
    assert not numbers_steps("Steps over 2 values.")


def test_steps_are_read_from_docstrings() -> None:
    text = (
        'def cook():\n    """Cook.\n\n    Steps of `cook`: wash,\n    cut-up, boil. Done.\n    """'
    )
    page = Page(PurePosixPath("engine/cook.py"), text)
    assert [listed_steps(text) for text in docstrings(page)] == [
        [],
        ["cook.wash", "cook.cut-up", "cook.boil"],
    ]


def test_references_to_steps_are_seen_with_and_without_a_known_operation() -> None:
    text = "Steps `cook.wash` and `bake.heat`: a crash before `cook.boil`, in `engine.spark`."
    assert named_steps(text, ["cook"]) == ["cook.wash", "bake.heat", "cook.boil"]


def test_a_row_of_the_page_is_an_anchor_of_its_name() -> None:
    assert explained_steps('| <a id="cook.wash"></a>`cook.wash` | Wash. | Clean. |') == [
        "cook.wash"
    ]
