"""Versions: what a table's properties say in versions 6, 8 and 9, and which tables are written.

8 and 9 have the same timeline and the same files. Version 8 orders by one field, names a payload
class and a strategy of merging, and its indexes have the formats of before release 1.1. Version 6
has the timeline of layout 1, names the class of its key generator, and has no mode of merging.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.port import Storage, no_file_times
from lakewarden.engine.table.change_logging import captures_changes
from lakewarden.engine.table.config import (
    COMPLEX_GENERATORS,
    GENERATOR_CLASSES,
    NEW_ENCODING_KEY,
    TableConfig,
    TableType,
    table_config,
)
from lakewarden.engine.table.merge_rules import (
    DELETE_FIELD_KEY,
    DELETE_MARKER_KEY,
    MERGE_PROPERTY_PREFIX,
    MergeMode,
    PartialMode,
)

WRITABLE_VERSIONS = (6, 8, 9)
NEWEST = 9
VERSION_KEY = "hoodie.table.version"
# The format of all indexes of version 8; its own releases do not name it.
EARLY_INDEXES = "V1"
# The newest version with the timeline of layout 1.
OLDEST = 6
_UPGRADE = "Upgrade the table, by upgrade_table."
# Since this version statistics tell the types of values, and secondary indexes hash values alone.
_TYPED_INDEXES = 9
Changes = dict[str, str | None]

_ORDERING, _PRECOMBINE = "hoodie.table.ordering.fields", "hoodie.table.precombine.field"
_MODE, _STRATEGY = "hoodie.record.merge.mode", "hoodie.record.merge.strategy.id"
_PAYLOAD, _LEGACY = "hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"
_PARTIAL = "hoodie.table.partial.update.mode"
_FORMAT = "hoodie.table.format"
_LAYOUT, _ARCHIVE = "hoodie.timeline.layout.version", "hoodie.archivelog.folder"
_PATH, _HISTORY = "hoodie.timeline.path", "hoodie.timeline.history.path"
INITIAL_VERSION_KEY = "hoodie.table.initial.version"
_GENERATOR, _GENERATOR_CLASS = "hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"
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


def refuse_read_only(config: TableConfig, storage: Storage, *, only_folds: bool = False) -> None:
    """Refuse to write to a table of version 6 where its files would need more than is written.

    A log of it takes several writes, its metadata table is of such logs, and only modification
    times say when an instant completed.
    """
    if config.version > OLDEST:
        return
    if config.table_type is TableType.MERGE_ON_READ and not only_folds:
        raise _read_only("Several of its writes share a log file.", _UPGRADE)
    if captures_changes(config.properties):
        raise _read_only("Its change data would share log files.", _UPGRADE)
    if config.metadata_partitions:
        raise _read_only(
            "Several writes share a log file of its metadata table.",
            "Write with hoodie.metadata.enable=false, which drops it, or upgrade the table.",
        )
    if not storage.has_file_times:
        raise no_file_times(storage.location.uri)


def is_writable(config: TableConfig, storage: Storage) -> bool:
    """Whether instants may be published on a table."""
    try:
        refuse_read_only(config, storage)
    except InvalidRequest:
        return False
    return True


def stands_in_the_way(config: TableConfig, storage: Storage) -> bool:
    """Whether its metadata table is all for which a table is not written."""
    without = replace(config, metadata_partitions=())
    return not is_writable(config, storage) and is_writable(without, storage)


def has_metadata_written(config: TableConfig) -> bool:
    """Whether tables of the version get a metadata table of ours."""
    return config.version > OLDEST


def refuse_metadata(config: TableConfig) -> None:
    """Refuse to make a metadata table of a version that is only read."""
    if not has_metadata_written(config):
        raise InvalidRequest(
            "unsupported_metadata_table",
            what=f"Lakewarden makes no metadata table for a table of version {config.version}.",
            why="Several writes share a log file of it.",
            now="Upgrade the table first, by upgrade_table.",
        )


def after(properties: Mapping[str, str], changes: Changes) -> TableConfig:
    """The table that properties describe once they are changed."""
    changed = {**properties, **changes}
    return table_config(
        MappingProxyType({key: value for key, value in changed.items() if value is not None})
    )


def changed_to(config: TableConfig, version: int) -> Changes:
    """What the properties of one version become in another, as Java changes them, step by step."""
    changes: Changes = {}
    before = config.properties
    while config.version != version:
        if config.version == NEWEST:
            step, changed = 8, _as_eight(config)
        elif config.version == OLDEST:
            step, changed = 8, {**_as_eight(config), **_with_layout_2(config)}
        elif version == NEWEST:
            step, changed = NEWEST, _as_nine(config)
        else:
            step, changed = OLDEST, _as_six(config)
        changes |= {**changed, VERSION_KEY: str(step)}
        config = after(before, changes)
    return changes


def _as_six(config: TableConfig) -> Changes:
    if config.key_generator not in GENERATOR_CLASSES:
        raise _refused(config, f"the key generator {config.key_generator}", "It is newer.", OLDEST)
    if captures_changes(config.properties):
        raise _refused(config, "change data capture", "Its logs have other names there.", OLDEST)
    return {
        _LAYOUT: "1",
        _PATH: None,
        _HISTORY: None,
        _ARCHIVE: "archived",
        INITIAL_VERSION_KEY: None,
        _MODE: None,
        _STRATEGY: None,
        _GENERATOR: None,
        _GENERATOR_CLASS: GENERATOR_CLASSES[config.key_generator],
    }


def _with_layout_2(config: TableConfig) -> Changes:
    is_known = config.key_generator in GENERATOR_CLASSES
    generator: Changes = {_GENERATOR: config.key_generator, _GENERATOR_CLASS: None}
    return {
        _LAYOUT: "2",
        _PATH: "timeline",
        _HISTORY: "history",
        _ARCHIVE: "history",
        INITIAL_VERSION_KEY: config.properties.get(INITIAL_VERSION_KEY, str(OLDEST)),
        **(generator if is_known else {}),
    }


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
        raise _refused(config, "several ordering fields", "Its releases order rows by one field.")
    if rules.delete_field:
        raise _refused(config, "a delete field", "Its releases do not read it from the properties.")
    if (rules.mode, rules.partial) not in _PAYLOADS:
        raise _refused(
            config, f"partial updates by {rules.partial.value}", "No payload class says so."
        )
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
    is_complex = config.key_generator in COMPLEX_GENERATORS and len(config.key_fields) == 1
    if is_complex and config.version == NEWEST:
        # Version 8 alone does not tell whether such keys name their column; those of 9 do.
        changes[NEW_ENCODING_KEY] = "false"
    return changes


def _refused(config: TableConfig, what: str, why: str, version: int = 8) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_version_change",
        what=f"A table with {what} cannot have version {version}.",
        why=why,
        now=f"Leave it at version {config.version}.",
    )


def _read_only(why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_table_version",
        what=f"Lakewarden reads but does not write this table of version {OLDEST}.",
        why=why,
        now=now,
        version=OLDEST,
    )
