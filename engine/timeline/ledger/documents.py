"""Documents: the JSON files that Lakewarden keeps for itself under `.hoodie/.lakewarden`.

Each names its format and its kind. What is newer than this engine is refused, never guessed at.
"""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import record_of
from lakewarden.engine.formats.json_text import format_json, parse_json
from lakewarden.engine.kernel.errors import InvalidRequest, corrupt

PRIVATE_FOLDER = ".hoodie/.lakewarden"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Document:
    """The kind of a document, and what is in it."""

    kind: str
    record: dict[str, object]


def format_document(kind: str, value: object) -> bytes:
    """The file for a value; its fields keep their names."""
    return format_json({"format": FORMAT, "kind": kind, **record_of(value, str)})


def parse_document(payload: bytes, path: str, *, kinds: frozenset[str]) -> Document:
    """The document in a file; another format or kind than is known is refused by name."""
    record = parse_json(payload, path)
    if not isinstance(record, dict) or type(record.get("format")) is not int:
        raise corrupt(path, None, "It does not say which format it has.")
    found, kind = record["format"], str(record.get("kind"))
    if found != FORMAT or kind not in kinds:
        raise InvalidRequest(
            "unsupported_document",
            what=f"Lakewarden cannot read {path}, a {kind!r:.40} of format {found!s:.20}.",
            why=f"It reads {', '.join(sorted(kinds))} of format {FORMAT}.",
            now="Use the version of Lakewarden that wrote it, or a newer one.",
            path=path,
            kind=kind,
        )
    return Document(kind, record)
