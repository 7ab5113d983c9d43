"""Merge rules: which of two records with the same key a table wants to keep."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import column_at

MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
DELETE_FIELD_KEY = "hoodie.payload.delete.field"
DELETE_MARKER_KEY = "hoodie.payload.delete.marker"
UNAVAILABLE_MARKER_KEY = "hoodie.write.partial.update.unavailable.value"
DEBEZIUM_UNAVAILABLE_VALUE = "__debezium_unavailable_value"


class MergeMode(Enum):
    """What decides between two records: the later commit, or the larger ordering value."""

    COMMIT_TIME = "COMMIT_TIME_ORDERING"
    EVENT_TIME = "EVENT_TIME_ORDERING"


class PartialMode(Enum):
    """Which values of a winning record don't count, so that the loser's value stays."""

    NONE = "NONE"
    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Everything about a table that merging depends on."""

    mode: MergeMode
    ordering_fields: tuple[str, ...] = ()
    partial: PartialMode = PartialMode.NONE
    unavailable_value: str = DEBEZIUM_UNAVAILABLE_VALUE
    delete_field: str | None = None
    delete_marker: str | None = None

    @property
    def ordering_names(self) -> tuple[str, ...]:
        """The columns that hold the ordering fields; these may be inside of structs."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.ordering_fields))

    def ordering(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        """What rows have in each ordering field."""
        return [column_at(rows, name) for name in self.ordering_fields]

    def ordering_types(self, schema: pa.Schema) -> list[pa.DataType]:
        """The types of the ordering fields."""
        return [column.type for column in self.ordering(schema.empty_table())]


@dataclass(frozen=True, slots=True)
class PayloadMerging:
    """What a payload class comes to: a mode, and properties where the table has no others."""

    mode: MergeMode
    partial: PartialMode = PartialMode.NONE
    ordering_fields: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None

    @property
    def properties(self) -> dict[str, str]:
        """What a new table keeps of it, besides the mode and the ordering fields."""
        said = {
            "hoodie.table.partial.update.mode": self.partial.value,
            MERGE_PROPERTY_PREFIX + DELETE_FIELD_KEY: self.delete_field,
            MERGE_PROPERTY_PREFIX + DELETE_MARKER_KEY: self.delete_marker,
        }
        return {name: text for name, text in said.items() if text not in (None, "NONE")}


_OF_DEBEZIUM = PayloadMerging(
    MergeMode.EVENT_TIME, delete_field="_change_operation_type", delete_marker="d"
)
# What release 1.2 makes of the payload classes of older tables.
_PAYLOADS = {
    "OverwriteWithLatestAvroPayload": PayloadMerging(MergeMode.COMMIT_TIME),
    "DefaultHoodieRecordPayload": PayloadMerging(MergeMode.EVENT_TIME),
    "EventTimeAvroPayload": PayloadMerging(MergeMode.EVENT_TIME),
    "AWSDmsAvroPayload": PayloadMerging(
        MergeMode.COMMIT_TIME, delete_field="Op", delete_marker="D"
    ),
    "debezium.MySqlDebeziumAvroPayload": replace(
        _OF_DEBEZIUM, ordering_fields=("_event_bin_file", "_event_pos")
    ),
    "debezium.PostgresDebeziumAvroPayload": replace(
        _OF_DEBEZIUM, partial=PartialMode.FILL_UNAVAILABLE, ordering_fields=("_event_lsn",)
    ),
    "PartialUpdateAvroPayload": PayloadMerging(MergeMode.EVENT_TIME, PartialMode.IGNORE_DEFAULTS),
    "OverwriteNonDefaultsWithLatestAvroPayload": PayloadMerging(
        MergeMode.COMMIT_TIME, PartialMode.IGNORE_DEFAULTS
    ),
}
_BUILT_IN_PREFIX = "org.apache.hudi.common.model."


def merge_rules(properties: Mapping[str, str], ordering_fields: tuple[str, ...]) -> MergeRules:
    """The rules a table's properties ask for; a custom payload or merger is refused by name."""
    payload = _payload(properties, ordering_fields)
    partial = properties.get("hoodie.table.partial.update.mode", "")
    return MergeRules(
        mode=payload.mode,
        ordering_fields=payload.ordering_fields or ordering_fields,
        partial=_partial_mode(partial) if partial else payload.partial,
        unavailable_value=_merge_property(properties, UNAVAILABLE_MARKER_KEY)
        or DEBEZIUM_UNAVAILABLE_VALUE,
        delete_field=_merge_property(properties, DELETE_FIELD_KEY) or payload.delete_field,
        delete_marker=_merge_property(properties, DELETE_MARKER_KEY) or payload.delete_marker,
    )


def _payload(properties: Mapping[str, str], ordering_fields: tuple[str, ...]) -> PayloadMerging:
    mode = properties.get("hoodie.record.merge.mode", "")
    payload_class = properties.get("hoodie.compaction.payload.class", "")
    known = {known_mode.value: known_mode for known_mode in MergeMode}
    # Version 9 keeps the payload class only for CUSTOM; in version 8 the stored mode wins over it.
    if mode in known:
        return PayloadMerging(known[mode])
    if payload_class:
        return payload_merging(payload_class)
    if mode:
        raise _unsupported_merge(f"merge mode {mode}")
    return PayloadMerging(MergeMode.EVENT_TIME if ordering_fields else MergeMode.COMMIT_TIME)


def payload_merging(payload_class: str) -> PayloadMerging:
    """What a payload class of Hudi comes to; another one is refused by name."""
    name = payload_class.removeprefix(_BUILT_IN_PREFIX)
    if name not in _PAYLOADS:
        raise _unsupported_merge(f"payload class {payload_class}")
    return _PAYLOADS[name]


def _partial_mode(text: str) -> PartialMode:
    try:
        return PartialMode(text)
    except ValueError:
        raise _unsupported_merge(f"partial update mode {text}") from None


def _merge_property(properties: Mapping[str, str], key: str) -> str | None:
    return properties.get(MERGE_PROPERTY_PREFIX + key) or properties.get(key)


def _unsupported_merge(what: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_merge",
        what=f"The table merges records by {what}, which Lakewarden does not implement.",
        why="A Java class defines it; guessing could return wrong rows.",
        now=(
            "Read it with the engine that wrote it, or migrate it to event-time or "
            "commit-time ordering."
        ),
    )
