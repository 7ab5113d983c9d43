"""Texts in arguments and rows: lists, words, times and values of any type."""

import difflib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest


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
