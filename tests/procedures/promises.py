"""What users of procedures count on: positions of arguments and columns, typed from their pages.

More arguments and columns may follow behind these; none may come before or between.
"""

from typing import NamedTuple


class Promise(NamedTuple):
    """The first arguments of a procedure and its first columns, in their order."""

    arguments: str
    columns: str


# Without a counterpart in Hudi.
OURS = {
    "cancel_plan": Promise(
        "table instant reason force wait_seconds dry_run",
        "instant service outcome cleanup held_by removed_files_count reclaimed_bytes"
        " handed_back_partitions_count message",
    ),
    "show_plans": Promise(
        "table path service state limit",
        "instant service state cancellable partitions_count file_groups_count input_bytes attempt"
        " owner host step done_ratio started_at last_beat_at expires_at missing_partitions_count"
        " blocks",
    ),
    "explain_plan": Promise(
        "table path service instant partition limit",
        "partition file_id verdict reason bytes log_files_count held_by_instant",
    ),
    "show_blockers": Promise(
        "table path", "blocked_service instant action state age_seconds owner remedy"
    ),
    "table_health": Promise("table path database", "metric value unit threshold verdict remedy"),
    "show_heartbeats": Promise("table path instant", "instant attempt owner"),
    "show_locks": Promise("table path", "lock state owner"),
    "show_markers": Promise("table path instant", "instant partition file_name"),
    "run_metadata_maintenance": Promise("table path services", "service outcome instant"),
    "sweep": Promise("table path", "instant deleted_files_count message"),
    "show_ledger": Promise("table path instant", "instant number entry"),
}

_PLANS = "timestamp operation_size state"
# As Hudi has them.
HUDIS = {
    "run_compaction": Promise("op table path timestamp options instants limit", _PLANS),
    "run_log_compaction": Promise("op table path timestamp options instants limit", _PLANS),
    "run_indexing": Promise("op table path timestamp options instants limit", _PLANS),
    "run_clustering": Promise(
        "table path predicate order show_involved_partition op order_strategy options instants"
        " selected_partitions partition_regex_pattern limit",
        "timestamp input_group_size state involved_partitions",
    ),
    "run_clean": Promise(
        "table schedule_in_line clean_policy retain_commits hours_retained"
        " file_versions_retained trigger_strategy trigger_max_commits options",
        "start_clean_time time_taken_in_millis total_files_deleted earliest_commit_to_retain"
        " bootstrap_part_metadata version",
    ),
    "run_ttl": Promise("table ttl_policy retain_days options", "deleted_partitions"),
    "archive_commits": Promise(
        "table path min_commits max_commits retain_commits enable_metadata", "result"
    ),
    "run_timeline_compaction": Promise("table path", "start_compaction_time time_taken_in_millis"),
    "run_rollback_inflight_tableservice": Promise(
        "table path pending_instant delete_request_instant_file", "instant time_cost"
    ),
    "cleanup_stale_inflight_commits": Promise(
        "table allowed_inflight_interval_minutes include_ingestion_commits dry_run",
        "instant_time action rollback_status",
    ),
    "show_inflight_commits": Promise("table min_age_minutes", "instant_time action state"),
    "drop_partition": Promise("table partition", "result"),
    "truncate_table": Promise("table partitions", "result time_cost"),
    "create_savepoint": Promise("table commit_time user comments path", "create_savepoint_result"),
    "delete_savepoint": Promise("table instant_time path", "delete_savepoint_result"),
    "rollback_to_savepoint": Promise("table instant_time path", "rollback_savepoint_result"),
    "show_savepoints": Promise("table path", "savepoint_time"),
    "rollback_to_instant": Promise("table instant_time", "rollback_result"),
    "delete_marker": Promise("table instant_time", "delete_marker_result"),
}
PROMISES = HUDIS | OURS
