"""The page of all errors, `docs/reference/errors.md`: made from the code, so that it is true.

`python -m scripts.errors_page > docs/reference/errors.md` renews it.
"""

import inspect
from collections.abc import Iterator, Sequence
from itertools import groupby

from lakewarden.engine.kernel import errors
from scripts.error_texts import KINDS, ErrorText, error_texts
from scripts.java_texts import java_texts

HEAD = """\
# Errors

Every error is a `LakewardenError`. Its class is its kind and says what a caller can do. Its `code`
is stable and says what happened. Its text has three parts: what happened, why, and what to do now.
They are attributes, too: `error.what`, `error.why`, `error.now`. Values such as the path or the
instant are in `error.parameters`.

`{name}` stands for a value. A slash separates the forms that a part can take. In SQL the code is
the condition, in capitals (`LAKEWARDEN_UNKNOWN_TABLE`).

This page is made by `python -m scripts.errors_page`."""

OF_SPARK = "Refused by Lakewarden's classes in Spark"


def page() -> str:
    """The whole page."""
    return "\n".join(_lines(error_texts())) + "\n"


def _lines(texts: Sequence[ErrorText]) -> Iterator[str]:
    yield HEAD
    for kind in KINDS:
        yield from ("", f"## {kind}", "", inspect.getdoc(getattr(errors, kind)) or "")
        yield from _codes(text for text in texts if text.kind == kind)
    yield from ("", f"## {OF_SPARK}", "", "These come from the planner of a Spark session.")
    yield from _codes(java_texts())


def _codes(texts: Iterator[ErrorText]) -> Iterator[str]:
    for code, same in groupby(texts, key=lambda one: one.code):
        yield from ("", f"### {code}", "", "| what | why | what now |", "| --- | --- | --- |")
        yield from dict.fromkeys(_row(one) for one in same)


def _row(text: ErrorText) -> str:
    cells = (" / ".join(part) for part in text.parts)
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    print(page(), end="")
