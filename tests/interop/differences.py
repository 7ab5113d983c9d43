"""Where the implementations are known to differ, and why; docs/java-differences.md tells users.

Each entry is tested to be still true, so that none outlives its reason.
"""

# Java fails on every read of these.
JAVA_CANNOT_READ = {
    "mor_keygen_custom": "a timestamp partition field over a long column: Failed to cast value",
}

# Java must not be asked for incremental windows of these.
JAVA_WINDOWS_NOT_ASKED = {
    "mor_partial_updates": "windows after the base file return nothing, or crash the JVM",
}

# The Rust reader refuses these, or gives up on them.
RUST_CANNOT_READ = {
    "cow_drop_partition_columns": "partition columns that are not in the data files",
    "cow_timestamp_ntz": "timestamps without a zone",
    "mor_event_time_two_fields": "several ordering fields",
    "mor_keygen_custom": "key generator types within the partition fields",
}

# The Rust reader returns other rows of these than Java and we do.
RUST_READS_DIFFERENTLY = {
    "cow_keygen_timestamp": "the partition column has its type in the data files, not text",
    "cow_partition_slash_separated": "dates stay as written, not as their directories are named",
    "cow_partition_url_encoded": "a null partition value comes back as its directory's name",
    "mor_nbcc": "file groups of log files only, written by overlapping writers, are not seen",
    "mor_partition_default": "a null partition value comes back as its directory's name",
}
