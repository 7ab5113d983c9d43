"""Where the implementations are known to differ, and why; docs/java-differences.md tells users.

Each entry is tested to be still true, so that none outlives its reason.
"""

# Java fails on every read of these.
JAVA_CANNOT_READ = {
    "mor_keygen_custom": "a timestamp partition field over a long column: Failed to cast value",
}

# Java reads other values of these than we do.
JAVA_READS_DIFFERENTLY = {
    "cow_keygen_timestamp": "the partition column comes back as text, not in the type of the files",
    "cow_partition_slash_separated": "dates come back as their directories are named",
    "mor_deletes": "a deleted row comes back where the row written after it is older",
}

# What Java must be told when it reads these.
JAVA_NEEDS_OPTIONS = {
    # Without it a renamed column is null in files written before.
    "cow_schema_on_read": {"hoodie.schema.on.read.enable": "true"},
}

# Java returns other rows for some windows of these.
JAVA_READS_CHANGES_DIFFERENTLY = {
    "cow_partition_url_encoded": "partition values of a window from the start stay encoded",
    "mor_deletes": "a deleted row comes back where the row written after it is older",
}

# Java must not be asked for windows of these that start after the base file: it can crash.
JAVA_CRASHES_ON_LATER_CHANGES = {
    "mor_partial_updates": "logs with partial updates",
}

# Files of these were cleaned. Java returns the rows that are left, we refuse.
WE_REFUSE_WHAT_WAS_CLEANED = {
    "mor_clean_keep_latest_commits",
    "mor_metadata_services",
    "v8_cow_services_by_102",
    "v9_mor_by_111",
}

# What Java itself left untrue in these tables, or does not find in them: check and finding.
JAVA_DEFECTS = {
    "cow_all_types": ("column_stats", "[0.0, 0.0] does not cover"),
    "cow_expression_index": ("data_skipping", "0 with data skipping"),
    "cow_keygen_timestamp": ("data_skipping", "0 with data skipping"),
    "mor_all_types": ("partition_stats", "nan] does not cover"),
    "mor_indexing_async_completed": ("bloom_filters", "no filter for"),
    "mor_nbcc": ("partition_stats", "does not cover"),
    "mor_parquet_log_blocks": ("partition_stats", "nan] does not cover"),
    "mor_secondary_index": ("secondary_index", "is too much"),
    "v8_mor_by_102": ("record_index", "Java raised"),
}

# A rollback in Java begins with the services of the metadata table. A compaction that is due then
# takes in the very write that is to be taken back, and Java fails with this, now and ever after.
JAVA_COMPACTS_BEFORE_IT_ROLLS_BACK = "is earlier than the latest compaction"

# The Rust reader refuses these, or gives up on them.
RUST_CANNOT_READ = {
    "cow_drop_partition_columns": "partition columns that are not in the data files",
    "cow_timestamp_ntz": "timestamps without a zone",
    "mor_event_time_two_fields": "several ordering fields",
    "mor_keygen_custom": "key generator types within the partition fields",
}

# The Rust reader returns other rows of these than Java and we do.
RUST_READS_DIFFERENTLY = {
    "cow_schema_on_read": "renamed columns are null in files written before",
    "cow_partition_url_encoded": "a null partition value comes back as its directory's name",
    "mor_nbcc": "file groups of log files only, written by overlapping writers, are not seen",
    "mor_deletes": "a deleted row comes back where the row written after it is older",
    "mor_partition_default": "a null partition value comes back as its directory's name",
}
