"""Commit metadata: what a write has done, as its completed and inflight instants say.

Stored as Avro since version 8 and as JSON in version 6; both decode to the same value.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from lakewarden.engine.formats.instant_metadata.binding import (
    InstantCodec,
    Int32,
    record_of,
    schema_text,
    value_of,
)
from lakewarden.engine.formats.json_text import format_pretty, parse_json
from lakewarden.engine.storage import paths

# What Java writes where a file group has no earlier base file.
NO_PREVIOUS_COMMIT = "null"
# In smaller base files, footers with their bloom filters count for more than rows.
TELLING_BYTES_MIN = 4 << 20
_SUMMARIES_MAX = 256


class Operation(StrEnum):
    """The operation names on storage; a file may hold others."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    COMPACT = "COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    LOG_COMPACT = "LOG_COMPACT"
    BUCKET_RESCALE = "BUCKET_RESCALE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """Milliseconds spent by the writer of a file."""

    total_scan_time: int | None = 0
    total_create_time: int | None = 0
    total_upsert_time: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStat:
    """What a write did to one file group; the defaults are those of a new base file."""

    file_id: str = ""
    path: str | None = None
    prev_commit: str | None = NO_PREVIOUS_COMMIT
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str | None = None
    total_log_records: int = 0
    total_log_files: int | None = None
    total_updated_records_compacted: int = 0
    num_inserts: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    log_version: Int32 | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    cdc_stats: Mapping[str, int] | None = None
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_files_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_log_size_compacted: int = 0
    temp_path: str | None = None
    num_updates: int = 0

    @property
    def outputs(self) -> dict[str, int]:
        """The files that it names, with how many bytes the write has given each."""
        own = {self.path: self.file_size_in_bytes} if self.path else {}
        return {**own, **(self.cdc_stats or {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """The content of a commit or delta commit."""

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    compacted: bool = False
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    version: Int32 | None = None
    operation_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSummary:
    """What of a commit is asked for again and again, as small as it is with few files."""

    extra_metadata: Mapping[str, str]
    operation_type: str | None
    # Of the base files that are large enough to tell how large rows are.
    telling_bytes: int
    telling_rows: int
    # Whether its logs may delete keys.
    may_delete: bool

    @classmethod
    def of(cls, metadata: CommitMetadata) -> "CommitSummary":
        stats = [stat for some in metadata.partition_to_write_stats.values() for stat in some]
        telling = [stat for stat in stats if _tells(stat)]
        return cls(
            extra_metadata=metadata.extra_metadata,
            operation_type=metadata.operation_type,
            telling_bytes=sum(stat.file_size_in_bytes for stat in telling),
            telling_rows=sum(stat.num_writes for stat in telling),
            # What a log compaction has folded is not counted.
            may_delete=metadata.operation_type == Operation.LOG_COMPACT
            or any(stat.num_deletes for stat in stats),
        )


Commit = TypeVar("Commit", bound=CommitMetadata)

# By the digests of what they sum up: decoding what 10,000 files say takes half a second.
_summaries: dict[bytes, CommitSummary] = {}


def decode_commit(codec: InstantCodec[Commit], payload: bytes, path: str) -> Commit:
    """Metadata in either form; an empty file, as a crash may leave it, gives empty metadata."""
    if not payload:
        return codec.kind()
    if payload.lstrip()[:1] == b"{":
        return codec.checked(value_of(codec.kind, parse_json(payload, path), path), path)
    return codec.decode(payload, path)


def check_places(metadata: CommitMetadata, said_by: str) -> None:
    """Hold the files that a write names against the border of its table."""
    for partition, stats in metadata.partition_to_write_stats.items():
        paths.check_partition(partition, said_by)
        for stat in stats:
            if stat.partition_path != partition:
                paths.check_partition(stat.partition_path or "", said_by)
            _check_stat(stat, said_by)


def _check_stat(stat: WriteStat, said_by: str) -> None:
    paths.check_file_id(stat.file_id, said_by)
    for path in (stat.path, *(stat.cdc_stats or ())):
        paths.check_partition(path or "", said_by)
    for name in (stat.base_file, stat.prev_base_file, *(stat.log_files or ())):
        paths.check_file_id(name or "", said_by)


_CODEC = InstantCodec(CommitMetadata, schema_text("commit"), check_places)


def decode(payload: bytes, path: str) -> CommitMetadata:
    """The metadata of a commit, delta commit, or of one of their inflight files."""
    return decode_commit(_CODEC, payload, path)


def summary(payload: bytes, path: str) -> CommitSummary:
    """A summary of metadata; the same bytes are decoded once in a process."""
    digest = hashlib.blake2b(payload, digest_size=16).digest()
    known = _summaries.get(digest)
    if known is None:
        known = _summaries[digest] = CommitSummary.of(decode(payload, path))
        for oldest in list(_summaries)[:-_SUMMARIES_MAX]:
            _summaries.pop(oldest, None)
    return known


def _tells(stat: WriteStat) -> bool:
    is_base_file = not stat.log_files and bool(stat.path) and ".log." not in str(stat.path)
    is_large = stat.file_size_in_bytes >= TELLING_BYTES_MIN
    return is_base_file and is_large and stat.num_writes > 0


encode = _CODEC.encode


def encode_json(metadata: CommitMetadata) -> bytes:
    """The content as version 6 has it, of replace commits, too; what is null goes without saying.

    Java's class for it has no version.
    """
    record = {name: one for name, one in record_of(metadata).items() if name != "version"}
    return format_pretty(_without_nulls(record))


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
