"""Versions: what a table's properties say in version 8, and what in version 9.

Both have the same timeline and the same files. Version 8 orders by one field, names a payload class
and a strategy of merging, and its indexes have the formats of before release 1.1.
"""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.config import COMPLEX_GENERATORS, NEW_ENCODING_KEY, TableConfig
from lakewarden.engine.table.merge_rules import (
    DELETE_FIELD_KEY,
    DELETE_MARKER_KEY,
    MERGE_PROPERTY_PREFIX,
    MergeMode,
    PartialMode,
)

WRITABLE_VERSIONS = (8, 9)
NEWEST = 9
VERSION_KEY = "hoodie.table.version"
# The format of all indexes of version 8; its own releases do not name it.
EARLY_INDEXES = "V1"
# Since this version statistics tell the types of values, and secondary indexes hash values alone.
_TYPED_INDEXES = 9
Changes = dict[str, str | None]

_ORDERING, _PRECOMBINE = "hoodie.table.ordering.fields", "hoodie.table.precombine.field"
_MODE, _STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
_PAYLOAD, _LEGACY = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
_PARTIAL = "hoodie.table.partial.update.mode"
_FORMAT = "hoodie.table.format"
_CUSTOM = "CUSTOM"
_BY_PAYLOAD = "00000000-0000-0000-0000-000000000000"
_STRATEGIES = {
    MergeMode.COMMIT_TIME: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    MergeMode.EVENT_TIME: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
_CLASSES = "org.apache.hudi.common.model."
_PAYLOADS = {
    (MergeMode.COMMIT_TIME, PartialMode.NONE): f"{_CLASSES}OverwriteWithLatestAvroPayload",
    (MergeMode.EVENT_TIME, PartialMode.NONE): f"{_CLASSES}DefaultHoodieRecordPayload",
    (MergeMode.EVENT_TIME, PartialMode.IGNORE_DEFAULTS): f"{_CLASSES}PartialUpdateAvroPayload",
    (MergeMode.COMMIT_TIME, PartialMode.IGNORE_DEFAULTS): (
        f"{_CLASSES}OverwriteNonDefaultsWithLatestAvroPayload"
    ),
}


def index_version(config: TableConfig) -> str:
    """The format that definitions of new indexes name."""
    return "V2" if config.version >= _TYPED_INDEXES else EARLY_INDEXES


def changed_to(config: TableConfig, version: int) -> Changes:
    """What the properties of one of both versions become in the other, as Java changes them."""
    changes = _as_nine(config) if version == NEWEST else _as_eight(config)
    return {**changes, VERSION_KEY: str(version)}


def _as_nine(config: TableConfig) -> Changes:
    properties, rules = config.properties, config.merge
    payload, ordering = properties.get(_PAYLOAD), ",".join(rules.ordering_fields)
    is_partial = rules.partial is not PartialMode.NONE
    changes: Changes = {
        _FORMAT: "native",
        _STRATEGY: None,
        _MODE: rules.mode.value,
        _PARTIAL: rules.partial.value if is_partial else None,
    }
    if rules.delete_field and rules.delete_marker:
        changes[MERGE_PROPERTY_PREFIX + DELETE_FIELD_KEY] = rules.delete_field
        changes[MERGE_PROPERTY_PREFIX + DELETE_MARKER_KEY] = rules.delete_marker
    if ordering:
        changes |= {_ORDERING: ordering, _PRECOMBINE: None}
    return {**changes, _LEGACY: payload, _PAYLOAD: None} if payload else changes


def _as_eight(config: TableConfig) -> Changes:
    properties, rules = config.properties, config.merge
    if len(rules.ordering_fields) > 1:
        raise _refused("several ordering fields", "Its releases order rows by one field.")
    if rules.delete_field:
        raise _refused("a delete field", "Its releases do not read it from the properties.")
    if (rules.mode, rules.partial) not in _PAYLOADS:
        raise _refused(f"partial updates by {rules.partial.value}", "No payload class says so.")
    is_plain = rules.partial is PartialMode.NONE
    changes: Changes = {
        _ORDERING: None,
        _PRECOMBINE: ",".join(rules.ordering_fields) or None,
        _PARTIAL: None,
        _LEGACY: None,
        _FORMAT: None,
        _MODE: rules.mode.value if is_plain else _CUSTOM,
        _STRATEGY: _STRATEGIES[rules.mode] if is_plain else _BY_PAYLOAD,
        _PAYLOAD: properties.get(_LEGACY) or _PAYLOADS[rules.mode, rules.partial],
    }
    if config.key_generator in COMPLEX_GENERATORS and len(config.key_fields) == 1:
        # Version 8 alone does not tell whether such keys name their column; those of 9 do.
        changes[NEW_ENCODING_KEY] = "false"
    return changes


def _refused(what: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_version_change",
        what=f"A table with {what} cannot have version 8.",
        why=why,
        now=f"Leave it at version {NEWEST}.",
    )
