"""Identity: which rows of a table are one row is a fact of the table, kept in its properties.

A table whose index is named keeps the index's settings under their own names; one without a named
index keeps only within what its keys stand for one row, so that indexes may come and go.
"""

from collections.abc import Mapping

from lakewarden.engine.index.kinds import (
    Buckets,
    Identity,
    IndexChoice,
    IndexKind,
    KeyScope,
    unsupported_index,
)
from lakewarden.engine.index.options import (
    BUCKET_COUNT,
    BUCKET_ENGINE,
    BUCKET_FIELDS,
    INDEX_TYPE,
    SIMPLE_ENGINE,
)
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Resolved, Settings
from lakewarden.engine.table.config import (
    PROPERTIES_PATH,
    SETTING_PREFIX,
    TableConfig,
    kept_settings,
)

SCOPE_KEY = "lakewarden.key.scope"
# Tables of Java's whose partitions have numbers of buckets of their own name the rules here.
_BUCKETS_BY_PARTITION = "hoodie.bucket.index.partition.expressions"


def kept_kind(config: TableConfig) -> IndexKind | None:
    """The kind of index that a table's properties name."""
    return _kept(config)[INDEX_TYPE]


def recorded_identity(config: TableConfig) -> Identity | None:
    """What the properties say; None where they leave something open."""
    kept, kind = _kept(config), kept_kind(config)
    if kind is IndexKind.BUCKET:
        refuse_other_engines(config, kept)
        if kept.resolve(BUCKET_COUNT).is_default:
            return None
        return Identity(kind.scope, buckets_of(kept, config.key_fields))
    if kind is not None:
        return Identity(kind.scope)
    text = config.properties.get(SCOPE_KEY)
    return None if text is None else Identity(_scope(text))


def record_of(selection: IndexChoice, *, is_named: bool) -> Mapping[str, str | None]:
    """The properties that record an index; those of a former record are removed."""
    bucket_keys = (BUCKET_ENGINE.key, BUCKET_COUNT.key, BUCKET_FIELDS.key)
    record: dict[str, str | None] = {
        f"{SETTING_PREFIX}{key}": None for key in (INDEX_TYPE.key, *bucket_keys)
    }
    if not is_named:
        return {**record, SCOPE_KEY: selection.kind.scope.value}
    kept = {INDEX_TYPE.key: (selection.instead_of or selection.kind).value}
    if selection.buckets is not None:
        texts = (SIMPLE_ENGINE, str(selection.buckets.count), ",".join(selection.buckets.fields))
        kept |= dict(zip(bucket_keys, texts, strict=True))
    named = {f"{SETTING_PREFIX}{key}": text for key, text in kept.items()}
    return {**record, SCOPE_KEY: None, **named}


def buckets_of(settings: Settings, key_fields: tuple[str, ...]) -> Buckets:
    """The buckets that settings describe; those that cannot be are refused."""
    named = hashed_fields(settings, key_fields)
    count = settings[BUCKET_COUNT]
    if count < 1:
        raise bad_buckets("A bucket index cannot have 0 buckets.", key_fields)
    return Buckets(named or key_fields, count, key_fields)


def hashed_fields(settings: Settings, key_fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that settings have hashed, in the order of the key; none without a word."""
    named = [part.strip() for part in settings[BUCKET_FIELDS].split(",") if part.strip()]
    strangers = [name for name in named if name not in key_fields]
    if strangers:
        raise bad_buckets(f"A bucket index cannot hash {strangers[0]!r}.", key_fields)
    return tuple(name for name in key_fields if name in named)


def bad_buckets(what: str, key_fields: tuple[str, ...]) -> InvalidRequest:
    return InvalidRequest(
        "bad_buckets",
        what=what,
        why=f"It hashes fields of the record key, here {', '.join(key_fields)}.",
        now=f"Correct {BUCKET_FIELDS.key} or {BUCKET_COUNT.key}.",
    )


def refuse_other_engines(config: TableConfig, settings: Settings) -> None:
    """Refuse buckets that are not the same fixed set in all partitions."""
    engine = settings[BUCKET_ENGINE]
    if engine != SIMPLE_ENGINE:
        raise unsupported_index(
            f"BUCKET with the engine {engine}",
            "Only the engine SIMPLE has a fixed number of buckets.",
        )
    if config.properties.get(_BUCKETS_BY_PARTITION):
        raise buckets_by_partition()


def buckets_by_partition() -> InvalidRequest:
    return unsupported_index(
        "BUCKET with buckets by partition",
        "Expressions decide how many buckets each partition has.",
    )


def described(identity: Identity) -> str:
    """An identity in words, as a part of a sentence."""
    buckets = identity.buckets
    if buckets is not None:
        return f"{buckets.count} buckets of {', '.join(buckets.fields)} in each partition"
    if identity.scope is KeyScope.TABLE:
        return "keys that stand for one row in the whole table"
    return "keys that stand for one row within a partition"


def other_identity(identity: Identity, asked: Identity, given: Resolved[object]) -> InvalidRequest:
    """The refusal of a write that would take other rows for one row."""
    return InvalidRequest(
        "other_identity",
        what=f"{given.key}={_text(given.value)}, from the {given.origin.value}, asks for"
        f" {described(asked)}.",
        why=f"The table has {described(identity)}. Another index would write keys twice.",
        now="Leave it out. To change the table's index, call set_index.",
        setting=given.key,
        origin=given.origin.value,
    )


def identity_changed(instant: str) -> Conflict:
    """The end of a write that began before another identity was recorded."""
    return Conflict(
        "write_conflict",
        what=f"The write {instant} looked up its keys with another index than the table has now.",
        why="Another caller set the table's index after this write started.",
        now="Nothing was changed. Write again.",
        instant=instant,
    )


def _kept(config: TableConfig) -> Settings:
    return Settings.of(table=kept_settings(config.properties))


def _scope(text: str) -> KeyScope:
    try:
        return KeyScope(text)
    except ValueError:
        raise CorruptTable(
            "bad_property",
            what=f"{PROPERTIES_PATH} says {SCOPE_KEY}={text!r}.",
            why="This property cannot have that value.",
            now="Set it to partition or table, whichever writers have used so far.",
            path=PROPERTIES_PATH,
            key=SCOPE_KEY,
        ) from None


def _text(value: object) -> str:
    return value.value if isinstance(value, IndexKind) else str(value)
