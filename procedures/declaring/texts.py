"""Texts in arguments and rows: lists, words, times and values of any type.

Options in one text: 'key=value,key2=value2', with quotes around values that hold commas.

Kept files: what Hudi's procedures delete by hand stays, since the table counts on it.
"""

import difflib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest

_PAIR = re.compile(
    r"""\s*(?P<key>[^=,'"\s]+)\s*=\s*
        (?:'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"]|"")*)"|(?P<plain>[^,'"]*))\s*(?:,|$)""",
    re.VERBOSE,
)


def parse_options(text: str) -> dict[str, str]:
    """The options in a text; `ValueError` says from where on it is not understood.

    A plain value goes to the next comma, and may hold `=`. Inside quotes the quote is doubled.
    """
    options: dict[str, str] = {}
    position = 0
    while position < len(text) and text[position:].strip():
        pair = _PAIR.match(text, position)
        if pair is None:
            raise ValueError(f"{text[position:].strip()!r} is not key=value")
        if pair["key"] in options:
            raise ValueError(f"{pair['key']} is given twice")
        options[pair["key"]] = _value(pair)
        position = pair.end()
    return options


def _value(pair: re.Match[str]) -> str:
    if pair["single"] is not None:
        return pair["single"].replace("''", "'")
    if pair["double"] is not None:
        return pair["double"].replace('""', '"')
    return pair["plain"].strip()


def listed(text: str | None) -> tuple[str, ...]:
    """The items of a list that is separated by commas; none without a text."""
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def value_text(value: pa.Scalar | None) -> str | None:
    """A value of a column as text; bytes in hexadecimal digits, times as ISO 8601 has them."""
    plain = None if value is None else value.as_py()
    match plain:
        case None:
            return None
        case bool():
            return str(plain).lower()
        case bytes():
            return plain.hex()
        case datetime():
            return plain.isoformat()
    return str(plain)


def one_word(argument: str, given: str, words: Iterable[str]) -> str:
    """The word that is meant; case, spaces, `_` and `-` don't matter."""
    known = {_plain(word): str(word) for word in words}
    found = known.get(_plain(given))
    if found is None:
        nearest = difflib.get_close_matches(_plain(given), known, n=1, cutoff=0.5)
        raise InvalidRequest(
            "bad_argument",
            what=f"{argument} => {given!r} is not known.",
            why=f"It must be one of {', '.join(known.values())}.",
            now=f"Did you mean {known[nearest[0]]!r}?" if nearest else "Give one of these.",
            argument=argument,
        )
    return found


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


_EPOCH = datetime.fromtimestamp(0, UTC)


def moment_of(epoch_ms: int | None) -> datetime | None:
    """A time with its zone; nothing where the time is not known."""
    return None if epoch_ms is None else _EPOCH + timedelta(milliseconds=epoch_ms)


NeedDelete = Annotated[bool, "Refused: files leave a table by clean, rollback and restore only."]


def refuse_delete(procedure: str, *, need_delete: bool) -> None:
    """Refuse to delete data files because an argument says so."""
    if need_delete:
        raise InvalidRequest(
            "unsupported_delete",
            what=f"{procedure} does not delete files.",
            why="Every reader would miss a file that the table needs.",
            now="Roll back the write that left it: CALL rollback_to_instant, or restore a"
            " savepoint.",
            argument="need_delete",
        )
