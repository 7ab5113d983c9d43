"""Sizes: what the partitions of a metadata table take on storage."""

from dataclasses import dataclass

from lakewarden.engine.metadata.reading.table import MetadataTable


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSizes:
    """What the newest slices of one partition of the metadata table take."""

    partition: str
    file_groups_count: int
    base_files_count: int
    base_bytes: int
    log_files_count: int
    log_bytes: int


def sizes_of(metadata: MetadataTable, partition: str) -> MetadataSizes:
    """What one partition of the metadata table takes, built or being built."""
    slices = metadata.slices(partition)
    bases = [one.base_file.size_bytes for one in slices if one.base_file is not None]
    logs = [log.size_bytes for one in slices for log in one.log_files]
    return MetadataSizes(
        partition=partition,
        file_groups_count=len(slices),
        base_files_count=len(bases),
        base_bytes=sum(bases),
        log_files_count=len(logs),
        log_bytes=sum(logs),
    )


def entries_at_most(metadata: MetadataTable, partition: str) -> int:
    """How many entries one partition has, where those that logs change count again.

    Base files say it in their trailers; logs are small, and read whole.
    """
    return metadata.partition(partition).entries_at_most() if metadata.slices(partition) else 0
