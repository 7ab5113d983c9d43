"""Index settings: which index a write uses, by Hudi's option names and with Hudi's defaults."""

from lakewarden.engine.index.kinds import (
    Buckets,
    IndexChoice,
    IndexKind,
    parse_kind,
    unsupported_index,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, flag, whole_number
from lakewarden.engine.metadata.definitions import load_definitions
from lakewarden.engine.metadata.table import RECORD_INDEX
from lakewarden.engine.snapshot import Snapshot

SIMPLE_ENGINE = "SIMPLE"

INDEX_TYPE: Setting[IndexKind | None] = Setting(
    "hoodie.index.type",
    None,
    parse_kind,
    "How a write finds keys; by default the table's record index, or SIMPLE without one",
)
BUCKET_ENGINE = Setting(
    "hoodie.index.bucket.engine",
    SIMPLE_ENGINE,
    lambda text: text.strip().upper(),
    "How a bucket index divides keys; only SIMPLE is implemented",
)
BUCKET_COUNT = Setting(
    "hoodie.bucket.index.num.buckets", 256, whole_number, "Buckets in each partition"
)
BUCKET_FIELDS = Setting(
    "hoodie.bucket.index.hash.field",
    "",
    str,
    "The key fields that a bucket index hashes, separated by commas; by default all of them",
)
SIMPLE_MOVES = Setting(
    "hoodie.simple.index.update.partition.path",
    True,
    flag,
    "Whether GLOBAL_SIMPLE moves a key to the partition of the incoming row",
)
BLOOM_MOVES = Setting(
    "hoodie.bloom.index.update.partition.path",
    True,
    flag,
    "Whether GLOBAL_BLOOM moves a key to the partition of the incoming row",
)
RECORD_INDEX_MOVES = Setting(
    "hoodie.record.index.update.partition.path",
    False,
    flag,
    "Whether a global record index moves a key to the partition of the incoming row",
)
INDEX_SETTINGS: tuple[Setting[object], ...] = (
    INDEX_TYPE,
    BUCKET_ENGINE,
    BUCKET_COUNT,
    BUCKET_FIELDS,
    SIMPLE_MOVES,
    BLOOM_MOVES,
    RECORD_INDEX_MOVES,
)

_MOVES = {
    IndexKind.GLOBAL_SIMPLE: SIMPLE_MOVES,
    IndexKind.GLOBAL_BLOOM: BLOOM_MOVES,
    IndexKind.GLOBAL_RECORD_INDEX: RECORD_INDEX_MOVES,
}
# What finds the same keys without a record index, only slower.
_FALLBACKS = {
    IndexKind.GLOBAL_RECORD_INDEX: IndexKind.GLOBAL_SIMPLE,
    IndexKind.RECORD_INDEX: IndexKind.SIMPLE,
}


def choose_index(state: Snapshot, settings: Settings) -> IndexChoice:
    """The index to use for a write to a table.

    As in Hudi, a record index that the table does not have yet is replaced by reading the keys of
    the base files; whether keys move stays as it was asked for.
    """
    existing = record_index_kind(state)
    asked = settings[INDEX_TYPE]
    kind = asked or existing or IndexKind.SIMPLE
    moves = kind in _MOVES and state.config.is_partitioned and settings[_MOVES[kind]]
    if kind is IndexKind.BUCKET:
        return IndexChoice(kind, buckets=_buckets(settings, state.config.key_fields))
    if not kind.is_record_index or kind is existing:
        return IndexChoice(kind, moves)
    if existing is None:
        return IndexChoice(_FALLBACKS[kind], moves, instead_of=kind)
    raise _other_record_index(kind, existing)


def record_index_kind(state: Snapshot) -> IndexKind | None:
    """The record index that a table has: one for all partitions, one for each, or none."""
    if not state.config.has_metadata(RECORD_INDEX):
        return None
    for definition in load_definitions(state.storage, state.config):
        if definition.partition == RECORD_INDEX and definition.is_partitioned:
            return IndexKind.RECORD_INDEX
    return IndexKind.GLOBAL_RECORD_INDEX


def _buckets(settings: Settings, key_fields: tuple[str, ...]) -> Buckets:
    engine = settings[BUCKET_ENGINE]
    if engine != SIMPLE_ENGINE:
        raise unsupported_index(
            f"BUCKET with the engine {engine}", "Only the engine SIMPLE has a fixed set of buckets."
        )
    named = tuple(part.strip() for part in settings[BUCKET_FIELDS].split(",") if part.strip())
    count = settings[BUCKET_COUNT]
    strangers = [name for name in named if name not in key_fields]
    if strangers or count < 1:
        raise InvalidRequest(
            "bad_buckets",
            what=f"A bucket index cannot hash {strangers[0]!r}."
            if strangers
            else "A bucket index cannot have 0 buckets.",
            why=f"It divides rows by fields of the record key, here {', '.join(key_fields)}.",
            now=f"Correct {BUCKET_FIELDS.key} or {BUCKET_COUNT.key}.",
        )
    return Buckets(named or key_fields, count, key_fields)


def _other_record_index(asked: IndexKind, existing: IndexKind) -> InvalidRequest:
    return InvalidRequest(
        "other_record_index",
        what=f"The table has no index of the type {asked.value}.",
        why=f"Its record index is of the type {existing.value}.",
        now=f"Set {INDEX_TYPE.key} to {existing.value}, or leave it out.",
        asked=asked.value,
        existing=existing.value,
    )
