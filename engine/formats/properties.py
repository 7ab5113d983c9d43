"""Java properties: the text form of `hoodie.properties`, read and written as Java does it.

Reading accepts everything `java.util.Properties.load` accepts; writing escapes as `store` does, so
that a table changed by one engine stays readable for the other.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

from lakewarden.engine.kernel.errors import CorruptTable, corrupt

CHECKSUM_KEY = "hoodie.table.checksum"
# Where a table, or its metadata table, has them.
PROPERTIES_FILE = ".hoodie/hoodie.properties"

_REMEMBERED_BYTES_MAX = 1 << 16
_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {
    "\\": "\\\\",
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}
_SPECIAL = re.compile(r"[\\=:#!]|[^ -~]")
_NOT_LATIN = re.compile("[^\x00-\xff]")


def parse_properties(payload: bytes, path: str) -> dict[str, str]:
    """The keys and values of a properties file; of a repeated key the last value counts."""
    parsed = _remembered if len(payload) <= _REMEMBERED_BYTES_MAX else _parsed
    return dict(parsed(payload, path))


def _parsed(payload: bytes, path: str) -> dict[str, str]:
    text = payload.decode("latin-1")
    properties: dict[str, str] = {}
    for offset, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        value = line[separator.end() :]
        properties[_unescaped(key[0], path, offset)] = _unescaped(value, path, offset)
    return properties


# One operation reads the same few files again and again.
_remembered = lru_cache(maxsize=32)(_parsed)


def format_properties(properties: Mapping[str, str], comment: str) -> bytes:
    """A properties file with the given comment, one `#` line for each of its lines."""
    lines = ["#" + _NOT_LATIN.sub(_as_unicode_escape, line) for line in _LINE_END.split(comment)]
    for key, value in properties.items():
        escaped_key = _escaped(key).replace(" ", "\\ ")
        escaped_value = _escaped(value)
        if value.startswith(" "):
            escaped_value = "\\" + escaped_value
        lines.append(f"{escaped_key}={escaped_value}")
    return "".join(line + "\n" for line in lines).encode("latin-1")


def table_checksum(database: str, table: str) -> int:
    """The checksum of a table: it covers the two names and nothing else."""
    return zlib.crc32(f"{database}.{table}".encode())


def verify_checksum(properties: Mapping[str, str], path: str) -> None:
    """Raise `CorruptTable` when the stored checksum is wrong; one that is missing is accepted."""
    stored = properties.get(CHECKSUM_KEY)
    if stored is None:
        return
    database = properties.get("hoodie.database.name", "")
    expected = table_checksum(database, properties.get("hoodie.table.name", ""))
    if stored != str(expected):
        raise _wrong_checksum(path, stored, expected)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and leading blanks, continued lines joined, each with its offset."""
    parts: list[str] = []
    start = 0
    for offset, natural in _natural_lines(text):
        line = natural.lstrip(_BLANKS)
        if not any(parts):
            start = offset
            if line.startswith(("#", "!")):
                parts = []
                continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if is_continued else line)
        if is_continued:
            continue
        whole = "".join(parts)
        if whole:
            yield start, whole
        parts = []
    if parts:
        yield start, "".join(parts)


def _natural_lines(text: str) -> Iterator[tuple[int, str]]:
    offset = 0
    for end in _LINE_END.finditer(text):
        yield offset, text[offset : end.start()]
        offset = end.end()
    if offset < len(text):
        yield offset, text[offset:]


def _unescaped(text: str, path: str, offset: int) -> str:
    if "\\" not in text:
        return text

    def replacement(escape: re.Match[str]) -> str:
        code = escape[1]
        if not code.startswith("u"):
            return _CONTROL.get(code, code)
        if not _HEX.fullmatch(code[1:]):
            raise corrupt(path, offset, f"The escape \\{code!s} is not \\u and four hex digits.")
        return chr(int(code[1:], 16))

    plain = _ESCAPE.sub(replacement, text)
    # Java's strings are UTF-16: two escapes may stand for one character.
    if _SURROGATE.search(plain):
        try:
            return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise corrupt(path, offset, "A \\u escape is half of a character.") from None
    return plain


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: _ESCAPED.get(found[0]) or _as_unicode_escape(found), text)


def _as_unicode_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def _wrong_checksum(path: str, stored: str, expected: int) -> CorruptTable:
    return CorruptTable(
        "wrong_checksum",
        what=f"{path} has the checksum {stored}, but its names give {expected}.",
        why=(
            "The file is damaged, or an edit of the database or table name left the "
            "checksum behind."
        ),
        now="Restore the file from its backup, or correct the checksum.",
        path=path,
        stored=stored,
        expected=expected,
    )
