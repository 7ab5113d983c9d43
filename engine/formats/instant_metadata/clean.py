"""Cleans: which old files shall be deleted, and which were."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec, Int32, schema_text
from lakewarden.engine.storage import paths

CLEAN_VERSION = 2


class CleanPolicy(StrEnum):
    """What a clean keeps, by its name on storage; a file may hold others."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedInstant:
    """The earliest instant whose files a clean keeps."""

    timestamp: str
    action: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFile:
    """A file to be deleted: a full address, with or without a scheme."""

    file_path: str | None
    is_bootstrap_base_file: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan:
    """The content of a requested clean."""

    earliest_instant_to_retain: RetainedInstant | None = None
    last_completed_commit_timestamp: str = ""
    policy: str
    # Plans of version 1 name their files here.
    files_to_be_deleted_per_partition: Mapping[str, tuple[str, ...]] | None = field(
        default_factory=dict
    )
    version: Int32 | None = CLEAN_VERSION
    file_paths_to_be_deleted_per_partition: Mapping[str, tuple[CleanFile, ...]] = field(
        default_factory=dict
    )
    partitions_to_be_deleted: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPartition:
    """What a clean deleted in one partition; files are bare names."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    is_partition_deleted: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanMetadata:
    """The content of a completed clean."""

    start_clean_time: str
    time_taken_in_millis: int = 0
    total_files_deleted: Int32 = 0
    earliest_commit_to_retain: str = ""
    last_completed_commit_timestamp: str = ""
    partition_metadata: Mapping[str, CleanPartition] = field(default_factory=dict)
    version: Int32 | None = CLEAN_VERSION
    bootstrap_partition_metadata: Mapping[str, CleanPartition] | None = field(default_factory=dict)
    extra_metadata: Mapping[str, str] | None = field(default_factory=dict)


def _check_plan(plan: CleanPlan, said_by: str) -> None:
    for partition in plan.partitions_to_be_deleted:
        paths.check_partition(partition, said_by)
    for partition, addresses in _addresses(plan):
        paths.check_partition(partition, said_by)
        for address in addresses:
            paths.check_address(address, partition, said_by)


def _addresses(plan: CleanPlan) -> Iterator[tuple[str, Iterable[str]]]:
    """What a plan of either version wants deleted; bootstrapped files are refused elsewhere."""
    yield from (plan.files_to_be_deleted_per_partition or {}).items()
    for partition, files in plan.file_paths_to_be_deleted_per_partition.items():
        own = (file for file in files if not file.is_bootstrap_base_file)
        yield partition, (file.file_path for file in own if file.file_path)


def _check_places(metadata: CleanMetadata, said_by: str) -> None:
    for key, partition in metadata.partition_metadata.items():
        paths.check_partition(key, said_by)
        paths.check_partition(partition.partition_path, said_by)


_PLAN = InstantCodec(CleanPlan, schema_text("clean_plan"), _check_plan)
_METADATA = InstantCodec(CleanMetadata, schema_text("clean"), _check_places)

decode_plan = _PLAN.decode_plan
encode_plan = _PLAN.encode
decode = _METADATA.decode
encode = _METADATA.encode
