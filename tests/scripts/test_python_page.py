"""The page of the Python API says what signatures and docstrings say."""

import inspect
from pathlib import Path

import lakewarden
from lakewarden.previews import Preview
from lakewarden.table_service_handle import Plan, TableServiceHandle
from scripts.python_page import members, page, public_classes

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def test_the_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m scripts.python_page renews it"


def test_every_public_call_has_a_docstring() -> None:
    owners = (lakewarden.Table, TableServiceHandle, Plan, Preview)
    calls = [(owner, name, one) for owner in owners for name, one in members(owner).items()]
    calls += [(lakewarden, name, getattr(lakewarden, name)) for name in lakewarden.__all__]
    assert not [f"{owner.__name__}.{name}" for owner, name, one in calls if not inspect.getdoc(one)]


def test_every_public_class_is_described() -> None:
    assert not [one.__name__ for one in public_classes() if not inspect.getdoc(one)]


def test_every_call_of_a_table_is_on_the_page() -> None:
    headings = {line[4:] for line in page().splitlines() if line.startswith("### ")}
    calls = {
        f"table.{name}"
        for name, one in members(lakewarden.Table).items()
        if not isinstance(one, property)
    }
    assert calls <= headings
