"""The steps of the protocol: as docstrings tell them, and as docs/protocol.md explains them.

A docstring that says "Steps of `commit`: lock, reload." has the steps `commit.lock` and
`commit.reload`. Elsewhere such a name in backticks refers to one of these.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.tidy import Page

_LISTED = re.compile(r"Steps of `([a-z-]+)`: ([a-z-]+(?:, [a-z-]+)*)\.")
_CARRIED_OUT = re.compile(r"Steps? (`[a-z-]+\.[a-z-]+`(?:(?:, | and | to |, and )`[a-z.-]+`)*)")
_NUMBERED = re.compile(r"Steps?(?: [0-9]|[:;][^.]*? 1 [a-z])")
_NAME = re.compile(r"`([a-z-]+\.[a-z-]+)`")
_EXPLAINED = re.compile(r'^\| <a id="([^"]+)"></a>`([^`]+)` \|', re.MULTILINE)

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(page: Page) -> Iterator[str]:
    """All docstrings of a module, each on one line."""
    for node in page.nodes:
        if isinstance(node, _Documented):
            yield " ".join((ast.get_docstring(node) or "").split())


def listed_steps(text: str) -> list[str]:
    """The steps that a docstring lists, in their order."""
    return [f"{listed[1]}.{step}" for listed in _LISTED.finditer(text) for step in _steps(listed)]


def named_steps(text: str, operations: Iterable[str]) -> list[str]:
    """The steps that a docstring refers to: it carries them out, or an operation has the name."""
    executed = [name for found in _CARRIED_OUT.findall(text) for name in _NAME.findall(found)]
    known = set(operations)
    mentioned = (name for name in _NAME.findall(text) if name.partition(".")[0] in known)
    return list(dict.fromkeys((*executed, *mentioned)))


def numbers_steps(text: str) -> bool:
    """Whether a docstring gives steps numbers, which change with every step that is added."""
    return _NUMBERED.search(text) is not None


def explained_steps(page_text: str) -> list[str]:
    """The steps that the page has a row for, in their order; each is an anchor of that name."""
    found = _EXPLAINED.findall(page_text)
    assert all(anchor == name for anchor, name in found)
    return [name for _, name in found]


def _steps(listed: re.Match[str]) -> list[str]:
    return listed[2].split(", ")
