"""Index settings: which index a write uses, by what the table is and by Hudi's options."""

from dataclasses import replace

from lakewarden.engine.index.from_files import identity_from_files
from lakewarden.engine.index.identity import (
    buckets_of,
    kept_kind,
    other_identity,
    recorded_identity,
    refuse_other_engines,
)
from lakewarden.engine.index.kinds import Identity, IndexChoice, IndexKind, KeyScope
from lakewarden.engine.index.options import (
    BLOOM_MOVES,
    BUCKET_COUNT,
    BUCKET_FIELDS,
    INDEX_TYPE,
    RECORD_INDEX_MOVES,
    SIMPLE_MOVES,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Resolved, Settings
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.snapshot import Snapshot

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


def select_index(state: Snapshot, settings: Settings) -> IndexChoice:
    """The index to use for a write to a table.

    Settings choose among the indexes that identify rows in the same way. A choice that would change
    the identity of rows is refused, unless the table has no rows yet and no index on record. As in
    Hudi, a missing record index is replaced by reading the keys of the files. Whether keys move
    between partitions stays as the settings say.
    """
    config, existing = state.config, record_index_kind(state)
    asked = settings[INDEX_TYPE]
    if asked is not None and asked.is_record_index and existing not in (None, asked):
        raise other_record_index(asked, existing)
    identity = identity_of(state, settings, existing)
    wanted, given = wanted_identity(identity, settings, config.key_fields)
    if not wanted.equals_in_effect(identity, is_partitioned=config.is_partitioned):
        if not may_be_named(state):
            raise other_identity(identity, wanted, given)
        identity = wanted
    if identity.buckets is not None:
        refuse_other_engines(config, settings)
        return IndexChoice(IndexKind.BUCKET, buckets=identity.buckets)
    kind = asked or _kind_of(identity, existing, is_partitioned=config.is_partitioned)
    moves = kind in _MOVES and config.is_partitioned and settings[_MOVES[kind]]
    if not kind.is_record_index or kind is existing:
        return IndexChoice(kind, moves)
    return IndexChoice(_FALLBACKS[kind], moves, instead_of=kind)


def identity_of(state: Snapshot, settings: Settings, existing: IndexKind | None = None) -> Identity:
    """What a table says it is, or else its files; `existing` is the record index it has.

    Settings say no more than what the files leave open.
    """
    return recorded_identity(state.config) or identity_from_files(state, settings, existing)


def may_be_named(state: Snapshot) -> bool:
    """Whether a write may still name the index: none is on record, and the table has no rows."""
    return kept_kind(state.config) is None and not state.timeline.active.completed()


def wanted_identity(
    identity: Identity, settings: Settings, key_fields: tuple[str, ...]
) -> tuple[Identity, Resolved[object]]:
    """The identity that settings ask for, and the one among them that says so."""
    asked = settings.resolve(INDEX_TYPE)
    kind = asked.value or (IndexKind.BUCKET if identity.buckets else None)
    if kind is not IndexKind.BUCKET:
        return identity if kind is None else Identity(kind.scope), asked
    said = [
        one for one in map(settings.resolve, (BUCKET_COUNT, BUCKET_FIELDS)) if not one.is_default
    ]
    known = identity.buckets
    if known is None or not said:
        return Identity(kind.scope, known or buckets_of(settings, key_fields)), asked
    wanted = buckets_of(settings, key_fields)
    has_count = said[0].key == BUCKET_COUNT.key
    has_fields = said[-1].key == BUCKET_FIELDS.key
    wanted = replace(
        wanted,
        count=wanted.count if has_count else known.count,
        fields=wanted.fields if has_fields else known.fields,
    )
    return Identity(kind.scope, wanted), said[0] if wanted.count != known.count else said[-1]


def _kind_of(identity: Identity, existing: IndexKind | None, *, is_partitioned: bool) -> IndexKind:
    """The index of a table without a word about it: its record index, if that tells rows apart
    as the table does."""
    if existing is not None and (existing.scope is identity.scope or not is_partitioned):
        return existing
    if identity.scope is KeyScope.PARTITION or not is_partitioned:
        return IndexKind.SIMPLE
    # Without its record index the keys are read, and nothing moves that did not move with it.
    return IndexKind.GLOBAL_RECORD_INDEX


def has_global_index(state: Snapshot, settings: Settings) -> bool:
    """Whether a key is one in the whole table, and not only in its partition."""
    kind = settings[INDEX_TYPE] or record_index_kind(state) or IndexKind.SIMPLE
    return kind.is_global


def record_index_kind(state: Snapshot) -> IndexKind | None:
    """The record index that a table has: one for all partitions, one for each, or none."""
    if not state.config.has_metadata(RECORD_INDEX):
        return None
    for definition in state.definitions:
        if definition.partition == RECORD_INDEX and definition.is_partitioned:
            return IndexKind.RECORD_INDEX
    return IndexKind.GLOBAL_RECORD_INDEX


def other_record_index(asked: IndexKind, existing: IndexKind) -> InvalidRequest:
    return InvalidRequest(
        "other_record_index",
        what=f"The table does not have an index of the type {asked.value}.",
        why=f"Its record index is of the type {existing.value}.",
        now=f"Set {INDEX_TYPE.key} to {existing.value}, or leave it out.",
        asked=asked.value,
        existing=existing.value,
    )
