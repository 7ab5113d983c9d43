"""Options in one text: 'key=value,key2=value2', with quotes around values that hold commas."""

import re

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
