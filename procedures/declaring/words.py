"""Words: arguments that name one of a few things; what is none of them is refused by name."""

import difflib
from collections.abc import Iterable

from lakewarden.engine.kernel.errors import InvalidRequest


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
