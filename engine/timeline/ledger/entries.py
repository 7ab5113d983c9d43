"""The entries of a ledger, and how they are stored.

Every entry carries its writer's random id, so that the payloads of rivals differ and a storage can
tell a retried request from a lost one.

Documents: the JSON files that Lakewarden keeps for itself under `.hoodie/.lakewarden`.

Each names its format and its kind. What is newer than this engine is refused, never guessed at.
"""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import record_of, value_of
from lakewarden.engine.formats.json_text import format_json, parse_json
from lakewarden.engine.kernel.errors import InvalidRequest, corrupt
from lakewarden.engine.storage.paths import check_partition
from lakewarden.engine.timeline.instants.instant import Action

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to make an attempt; the number of the entry is the number of the attempt."""

    instant: str
    action: Action
    attempt: int
    owner: str
    host: str
    process: str
    engine_version: str
    started_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """An attempt has succeeded; any process can publish the completed instant from this entry."""

    instant: str
    action: Action
    attempt: int
    owner: str
    at_ms: int
    completion_time: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The instant will never commit; its partitions go to the next plan of its service."""

    instant: str
    action: Action
    owner: str
    by: str
    reason: str
    at_ms: int
    partitions: tuple[str, ...] = ()
    missing_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A completed instant is taken back: its completed file goes first, then all that it made."""

    instant: str
    action: Action
    owner: str
    by: str
    reason: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """Another instant is about to commit: what was decided before is decided anew.

    The claim before it holds on. It only has to be read again, since its next number has changed.
    """

    instant: str
    action: Action
    owner: str
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Torn:
    """An entry that was cut short while it was created: its maker died before it was in force.

    It keeps its number and says nothing, so that anybody may go on behind it.
    """

    number: int


Entry = Claim | Committed | Cancelled | Withdrawn | Fenced

_KINDS: dict[str, type[Entry]] = {
    "claim": Claim,
    "committed": Committed,
    "cancelled": Cancelled,
    "withdrawn": Withdrawn,
    "fenced": Fenced,
}
# Every whole entry is one JSON object.
_ENDING = b"}"
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode_entry(entry: Entry) -> bytes:
    """The file of an entry."""
    return format_document(_NAMES[type(entry)], entry)


def decode_entry(payload: bytes, path: str) -> Entry:
    """The entry in a file; what a newer engine wrote is refused by name."""
    document = parse_document(payload, path, kinds=frozenset(_KINDS))
    entry = value_of(_KINDS[document.kind], document.record, path, str)
    if isinstance(entry, Cancelled):
        for partition in (*entry.partitions, *entry.missing_partitions):
            check_partition(partition, path)
    return entry


def is_torn(payload: bytes) -> bool:
    """Whether the file of an entry was cut short."""
    return not payload.endswith(_ENDING)
