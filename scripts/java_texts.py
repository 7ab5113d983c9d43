"""The error texts of the Java classes in `sql_ext/jvm`, read from their sources."""

import re
from collections.abc import Iterator
from pathlib import Path

from scripts.error_texts import CHECKOUT, ErrorText

SOURCES = CHECKOUT / "sql_ext" / "jvm" / "io"

_MADE = re.compile(r"LakewardenException\.of\(|new Refusal\(")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPENS, _CLOSES = "([{", ")]}"


def java_texts() -> Iterator[ErrorText]:
    """Every error that is made from texts, by code and place."""
    found = [text for path in sorted(SOURCES.rglob("*.java")) for text in _texts_of(path)]
    return iter(sorted(found, key=lambda one: (one.code, one.place)))


def _texts_of(path: Path) -> Iterator[ErrorText]:
    source = path.read_text(encoding="utf-8")
    codes = re.findall(r'"(UNSUPPORTED_[A-Z_]+)"', source)
    for match in _MADE.finditer(source):
        given = [_text(one) for one in _arguments(source, match.end())]
        place = f"{path.relative_to(CHECKOUT).as_posix()}:{match.start():06}"
        if match[0].startswith("new") and len(given) == 3:
            yield ErrorText("Java", codes[-1].lower(), *((one,) for one in given), place)
        elif len(given) == 5 and given[0].isupper():
            code, _, what, why, now = given
            yield ErrorText("Java", code.lower(), (what,), (why,), (now,), place)


def _arguments(source: str, start: int) -> list[str]:
    """The arguments of a call, from behind its parenthesis."""
    found, depth, begin, in_text = [], 0, start, False
    for at in range(start, len(source)):
        char = source[at]
        if char == '"' and source[at - 1] != "\\":
            in_text = not in_text
        if in_text:
            continue
        if depth == 0 and char in ",)":
            found.append(source[begin:at])
            begin = at + 1
        if char in _OPENS:
            depth += 1
        elif char in _CLOSES:
            if depth == 0:
                break
            depth -= 1
    return found


def _text(expression: str) -> str:
    """The texts of an expression in a row; what is not a text stands as its name."""
    pieces = []
    for part in re.split(r'\s*\+\s*(?=(?:[^"]*"[^"]*")*[^"]*$)', expression.strip()):
        match = _TEXT.fullmatch(part.strip())
        pieces.append(match[1] if match else "{" + re.split(r"\W", part.strip())[0] + "}")
    return "".join(pieces).replace("%s", "{table}").replace('\\"', '"')
