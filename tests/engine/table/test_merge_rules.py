"""Which merge rules the properties of a table mean."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode, merge_rules

MODEL = "org.apache.hudi.common.model."


def test_stored_mode_wins_over_payload_class() -> None:
    rules = merge_rules(
        {
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.compaction.payload.class": MODEL + "DefaultHoodieRecordPayload",
        },
        ("ts",),
    )
    assert rules.mode is MergeMode.COMMIT_TIME


@pytest.mark.parametrize(
    ("payload", "mode", "partial"),
    [
        ("OverwriteWithLatestAvroPayload", MergeMode.COMMIT_TIME, PartialMode.NONE),
        ("DefaultHoodieRecordPayload", MergeMode.EVENT_TIME, PartialMode.NONE),
        ("EventTimeAvroPayload", MergeMode.EVENT_TIME, PartialMode.NONE),
        ("PartialUpdateAvroPayload", MergeMode.EVENT_TIME, PartialMode.IGNORE_DEFAULTS),
        (
            "OverwriteNonDefaultsWithLatestAvroPayload",
            MergeMode.COMMIT_TIME,
            PartialMode.IGNORE_DEFAULTS,
        ),
    ],
)
def test_payload_class_of_an_older_table(
    payload: str, mode: MergeMode, partial: PartialMode
) -> None:
    rules = merge_rules({"hoodie.compaction.payload.class": MODEL + payload}, ("ts",))
    assert (rules.mode, rules.partial) == (mode, partial)


def test_without_mode_the_ordering_field_decides() -> None:
    assert merge_rules({}, ()).mode is MergeMode.COMMIT_TIME
    assert merge_rules({}, ("ts",)).mode is MergeMode.EVENT_TIME


def test_partial_mode_marker_and_delete_field() -> None:
    rules = merge_rules(
        {
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
            "hoodie.record.merge.property.hoodie.payload.delete.field": "op",
            "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
        },
        ("ts",),
    )
    assert rules.partial is PartialMode.FILL_UNAVAILABLE
    assert rules.unavailable_value == "__debezium_unavailable_value"
    assert (rules.delete_field, rules.delete_marker) == ("op", "D")


def test_payloads_of_change_streams_are_what_an_upgrade_makes_of_them() -> None:
    def rules(payload: str) -> MergeRules:
        return merge_rules({"hoodie.compaction.payload.class": MODEL + payload}, ("ts",))

    dms = rules("AWSDmsAvroPayload")
    assert (dms.mode, dms.ordering_fields) == (MergeMode.COMMIT_TIME, ("ts",))
    assert (dms.delete_field, dms.delete_marker) == ("Op", "D")
    mysql = rules("debezium.MySqlDebeziumAvroPayload")
    assert (mysql.mode, mysql.partial) == (MergeMode.EVENT_TIME, PartialMode.NONE)
    assert mysql.ordering_fields == ("_event_bin_file", "_event_pos")
    postgres = rules("debezium.PostgresDebeziumAvroPayload")
    assert postgres.ordering_fields == ("_event_lsn",)
    assert postgres.partial is PartialMode.FILL_UNAVAILABLE
    assert postgres.unavailable_value == "__debezium_unavailable_value"
    for one in (mysql, postgres):
        assert (one.delete_field, one.delete_marker) == ("_change_operation_type", "d")


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.record.merge.mode": "CUSTOM"},
        {"hoodie.compaction.payload.class": "com.acme.OurPayload"},
        {"hoodie.compaction.payload.class": MODEL + "HoodieJsonPayload"},
        {
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.table.partial.update.mode": "X",
        },
    ],
)
def test_what_only_java_code_defines_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        merge_rules(properties, ())
    assert refused.value.code == "unsupported_merge"
