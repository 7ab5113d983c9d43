"""What users of Hudi's procedures know: arguments and columns, typed out.

A letter tells a column's type: text, whole number, floating point, boolean, timestamp.
"""

ROW_TYPES = {"S": "STRING", "L": "BIGINT", "D": "DOUBLE", "B": "BOOLEAN", "T": "TIMESTAMP"}

_COMMIT_FIGURES = (
    "total_bytes_written L; total_files_added L; total_files_updated L; total_partitions_written L;"
    " total_records_written L; total_update_records_written L; total_errors L"
)
_STATS = (
    "commit_time S; state_transition_time S; action S; partition S; file_id S; previous_commit S;"
    " num_writes L; num_inserts L; num_deletes L; num_update_writes L; total_errors L;"
    " total_log_blocks L; total_corrupt_log_blocks L; total_rollback_blocks L; total_log_records L;"
    " total_updated_records_compacted L; total_bytes_written L"
)

_PLANS = "timestamp S; operation_size L; state S"

PROMISED: dict[str, tuple[str, str]] = {
    "show_timeline": (
        "table path limit showArchived filter startTime endTime",
        "instant_time S; action S; state S; requested_time T; inflight_time T; completed_time T;"
        " timeline_type S; rollback_info S",
    ),
    "show_compaction": ("table path limit", "timestamp S; operation_size L; state S"),
    "show_clustering": (
        "table path limit show_involved_partition",
        "timestamp S; input_group_size L; state S; involved_partitions S",
    ),
    "show_cleans": (
        "table limit showArchived filter",
        "clean_time S; state_transition_time S; action S; start_clean_time S;"
        " time_taken_in_millis L; total_files_deleted L; earliest_commit_to_retain S;"
        " last_completed_commit_timestamp S; version L",
    ),
    "show_cleans_metadata": (
        "table limit showArchived filter",
        "clean_time S; state_transition_time S; action S; start_clean_time S; partition_path S;"
        " policy S; delete_path_patterns L; success_delete_files L; failed_delete_files L;"
        " is_partition_deleted B; time_taken_in_millis L; total_files_deleted L",
    ),
    "show_clean_plans": (
        "table limit showArchived filter",
        "plan_time S; state S; action S; earliest_instant_to_retain S;"
        " last_completed_commit_timestamp S; policy S; version L; total_partitions_to_clean L;"
        " total_partitions_to_delete L; extra_metadata S",
    ),
    "show_commits": (
        "table limit",
        f"commit_time S; state_transition_time S; action S; {_COMMIT_FIGURES}",
    ),
    "show_commits_metadata": ("table limit", _STATS),
    "show_archived_commits": (
        "table limit start_ts end_ts",
        f"commit_time S; state_transition_time S; {_COMMIT_FIGURES}",
    ),
    "show_archived_commits_metadata": ("table limit start_ts end_ts", _STATS),
    "show_commit_files": (
        "table limit instant_time",
        "action S; partition_path S; file_id S; previous_commit S; total_records_updated L;"
        " total_records_written L; total_bytes_written L; total_errors L; file_size L",
    ),
    "show_commit_partitions": (
        "table limit instant_time",
        "action S; partition_path S; total_files_added L; total_files_updated L;"
        " total_records_inserted L; total_records_updated L; total_bytes_written L; total_errors L",
    ),
    "show_commit_write_stats": (
        "table limit instant_time",
        "action S; total_bytes_written L; total_records_written L; avg_record_size L",
    ),
    "show_commit_extra_metadata": (
        "table limit instant_time metadata_key",
        "instant_time S; action S; metadata_key S; metadata_value S",
    ),
    "commits_compare": ("table path", "compare_detail S"),
    "show_rollbacks": (
        "table limit",
        "instant S; rollback_instant S; total_files_deleted L; time_taken_in_millis L;"
        " total_partitions L",
    ),
    "show_rollback_detail": (
        "table limit instant_time",
        "instant S; rollback_instant S; partition S; deleted_file S; succeeded B",
    ),
    "export_instants": ("table local_folder limit actions desc", "export_detail S"),
    "show_fsview_all": (
        "table path max_instant include_max include_in_flight exclude_compaction limit path_regex"
        " filter",
        "partition S; file_id S; base_instant S; data_file S; data_file_size L; num_delta_files L;"
        " total_delta_file_size L; delta_files S",
    ),
    "show_fsview_latest": (
        "table path max_instant include_max include_in_flight exclude_compaction limit path_regex"
        " filter partition_path merge",
        "partition S; file_id S; base_instant S; data_file S; data_file_size L; num_delta_files L;"
        " total_delta_file_size L; delta_size_compaction_scheduled L;"
        " delta_size_compaction_unscheduled L; delta_to_base_radio_compaction_scheduled D;"
        " delta_to_base_radio_compaction_unscheduled D; delta_files_compaction_scheduled S;"
        " delta_files_compaction_unscheduled S",
    ),
    "show_logfile_metadata": (
        "table path log_file_path_pattern limit filter",
        "instant_time S; record_count L; block_type S; header_metadata S; footer_metadata S",
    ),
    "show_logfile_records": ("table path log_file_path_pattern merge limit filter", "records S"),
    "show_file_status": (
        "table path partition file filter",
        "status S; action S; instant S; timeline S; full_path S",
    ),
    "show_invalid_parquet": (
        "path parallelism limit needDelete partitions instants filter",
        "path S",
    ),
    "stats_file_sizes": (
        "table partition_path limit",
        "commit_time S; min L; 10th D; 50th D; avg D; 95th D; max L; num_files L; std_dev D",
    ),
    "stats_wa": (
        "table limit",
        "commit_time S; total_upserted L; total_written L; write_amplification_factor S",
    ),
    "show_table_properties": ("table path limit filter", "key S; value S"),
    "show_config": ("table path key", "key S; value S; origin S; default S; description S"),
    "run_compaction": ("op table path timestamp options instants limit", _PLANS),
    "run_log_compaction": ("op table path timestamp options instants limit", _PLANS),
    "run_indexing": ("op table path timestamp options instants limit", _PLANS),
    "run_clustering": (
        "table path predicate order show_involved_partition op order_strategy options instants"
        " selected_partitions partition_regex_pattern limit",
        "timestamp S; input_group_size L; state S; involved_partitions S",
    ),
    "repair_clustering_plan": (
        "table path instant op invalid_parquet_files validation_parallelism need_delete dry_run"
        " backup allow_empty_plan options",
        "instant S; path S; action S; deleted B; reason S",
    ),
    "copy_to_table": (
        "table query_type new_table begin_instance_time end_instance_time as_of_instant save_mode"
        " columns",
        "status L",
    ),
    "copy_to_temp_view": (
        "table query_type view_name begin_instance_time end_instance_time as_of_instant replace"
        " global",
        "status L",
    ),
    "upgrade_table": ("table to_version", "result B"),
    "downgrade_table": ("table to_version", "result B"),
    "repair_add_partition_meta": (
        "table dry_run",
        "partition_path S; metadata_is_present S; action S",
    ),
    "set_audit_lock": ("table path state", "table S; audit_state S; message S"),
    "show_audit_lock_status": (
        "table path",
        "table S; audit_enabled B; config_path S; audit_folder_path S",
    ),
    "validate_audit_lock": (
        "table path",
        "table S; validation_result S; transactions_validated L; issues_found L; details S",
    ),
    "cleanup_audit_lock": (
        "table path dry_run age_days",
        "table S; files_cleaned L; dry_run B; age_days L; message S",
    ),
    "repair_migrate_partition_meta": (
        "table dry_run",
        "partition_path S; text_metafile_present S; base_metafile_present S; action S",
    ),
    "repair_overwrite_hoodie_props": (
        "table new_props_file_path",
        "property S; old_value S; new_value S",
    ),
    "repair_corrupted_clean_files": ("table", "result B"),
    "repair_deduplicate": (
        "table duplicated_partition_path dry_run",
        "key S",
    ),
    "run_clean": (
        "table schedule_in_line clean_policy retain_commits hours_retained"
        " file_versions_retained trigger_strategy trigger_max_commits options",
        "start_clean_time S; time_taken_in_millis L; total_files_deleted L;"
        " earliest_commit_to_retain S; bootstrap_part_metadata S; version L",
    ),
    "run_ttl": ("table ttl_policy retain_days options", "deleted_partitions S"),
    "archive_commits": (
        "table path min_commits max_commits retain_commits enable_metadata",
        "result L",
    ),
    "run_timeline_compaction": ("table path", "start_compaction_time S; time_taken_in_millis L"),
    "run_rollback_inflight_tableservice": (
        "table path pending_instant delete_request_instant_file",
        "instant S; time_cost S",
    ),
    "cleanup_stale_inflight_commits": (
        "table allowed_inflight_interval_minutes include_ingestion_commits dry_run",
        "instant_time S; action S; rollback_status B",
    ),
    "show_inflight_commits": ("table min_age_minutes", "instant_time S; action S; state S"),
    "drop_partition": ("table partition", "result S"),
    "truncate_table": ("table partitions", "result S; time_cost L"),
    "create_savepoint": (
        "table commit_time user comments path",
        "create_savepoint_result B",
    ),
    "delete_savepoint": ("table instant_time path", "delete_savepoint_result B"),
    "rollback_to_savepoint": ("table instant_time path", "rollback_savepoint_result B"),
    "show_savepoints": ("table path", "savepoint_time S"),
    "rollback_to_instant": ("table instant_time", "rollback_result B"),
    "delete_marker": ("table instant_time", "delete_marker_result B"),
}
