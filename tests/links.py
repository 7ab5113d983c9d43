"""Links of Markdown pages: where they lead, and what leads nowhere."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tests.tidy import Page

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n+)+")
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_DROPPED = re.compile(r"[^\w\- ]")


def links(page: Page) -> Iterator[str]:
    """The targets of a page's links, as they are written; code has none."""
    text = _CODE.sub("", _INDENTED.sub("", _FENCED.sub("", page.text)))
    return (match[1] for match in _LINK.finditer(text))


def anchors(page: Page) -> frozenset[str]:
    """What links may name on a page: its headings as GitHub spells them, and its own anchors."""
    text = _FENCED.sub("", page.text)
    seen: Counter[str] = Counter()
    found = set(_ANCHOR.findall(text))
    for heading in _HEADING.findall(text):
        slug = _slug(heading)
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def linked_page(page: Page, target: str) -> PurePosixPath:
    """The file or folder that a link of a page leads to, from the top of the checkout."""
    path = target.partition("#")[0]
    if not path:
        return page.path
    parts: list[str] = []
    for part in (page.path.parent / path).parts:
        if part == "..":
            parts = parts[:-1] if parts else [part]
        else:
            parts.append(part)
    return PurePosixPath(*parts)


def broken_links(pages: Mapping[PurePosixPath, Page], checkout: Path) -> Iterator[str]:
    """A finding for each link that leads to no file, or to no anchor of a page."""
    for page in pages.values():
        for target in links(page):
            if _ELSEWHERE.match(target):
                continue
            path, fragment = linked_page(page, target), target.partition("#")[2]
            if not (checkout / path).exists():
                yield f"{page.path}: {target} is not there"
            elif fragment and path in pages and fragment not in anchors(pages[path]):
                yield f"{page.path}: {target} is no anchor"


def _slug(heading: str) -> str:
    plain = _LINK.sub(lambda link: link[0][1:].partition("]")[0], heading)
    return _DROPPED.sub("", plain.replace("`", "").lower()).replace(" ", "-")
