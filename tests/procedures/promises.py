"""What users of our own procedures count on: positions of arguments and columns, typed out.

More arguments and columns may follow behind these; none may come before or between.
"""

from typing import NamedTuple


class Promise(NamedTuple):
    """The first arguments of a procedure and its first columns, in their order."""

    arguments: str
    columns: str


# Those without a counterpart in Hudi.
PROMISES = {
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
    "show_rivals": Promise("table path instant", "instant action operation state"),
    "show_markers": Promise("table path instant", "instant partition file_name"),
    "run_metadata_maintenance": Promise("table path services", "service outcome instant"),
    "sweep": Promise("table path", "instant deleted_files_count message"),
    "show_ledger": Promise("table path instant", "instant number entry"),
}
