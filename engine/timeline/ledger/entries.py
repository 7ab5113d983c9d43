"""The entries of a ledger, and how they are stored.

Every entry carries its writer's random id, so that the payloads of rivals differ and a storage can
tell a retried request from a lost one.
"""

from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.storage.border import check_partition
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.documents import format_document, parse_document


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
