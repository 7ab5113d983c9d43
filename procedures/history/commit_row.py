"""Rows of commits, the same for active and for archived ones."""

from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.services.inspection.history.history import Recorded
from lakewarden.engine.services.inspection.history.writes import decode_write, figures_of_write


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCommitRow:
    """A commit in figures."""

    commit_time: Annotated[str, "Its instant."]
    state_transition_time: Annotated[str | None, "When it completed, as the timeline has it."]
    total_bytes_written: int
    total_files_added: Annotated[int, "File groups that it created."]
    total_files_updated: Annotated[int, "Existing file groups that it changed."]
    total_partitions_written: int
    total_records_written: int
    total_update_records_written: int
    total_errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    """A commit in figures, with what it did."""

    commit_time: Annotated[str, "Its instant."]
    state_transition_time: Annotated[str | None, "When it completed, as the timeline has it."]
    action: str
    total_bytes_written: int
    total_files_added: Annotated[int, "File groups that it created."]
    total_files_updated: Annotated[int, "Existing file groups that it changed."]
    total_partitions_written: int
    total_records_written: int
    total_update_records_written: int
    total_errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatRow:
    """What a commit wrote to one file group."""

    commit_time: Annotated[str, "The instant of the commit."]
    state_transition_time: Annotated[str | None, "When it completed, as the timeline has it."]
    action: str
    partition: str
    file_id: str
    previous_commit: Annotated[str | None, "That of the file it has replaced; null as a text."]
    num_writes: int
    num_inserts: int
    num_deletes: int
    num_update_writes: int
    total_errors: int
    total_log_blocks: int
    total_corrupt_log_blocks: int
    total_rollback_blocks: int
    total_log_records: int
    total_updated_records_compacted: int
    total_bytes_written: int


def archived_commit_row(recorded: Recorded) -> ArchivedCommitRow:
    metadata = decode_write(recorded)
    figures = figures_of_write(metadata)
    return ArchivedCommitRow(
        commit_time=recorded.instant.requested,
        state_transition_time=recorded.instant.completed,
        total_bytes_written=figures.bytes_written,
        total_files_added=figures.files_added,
        total_files_updated=figures.files_updated,
        total_partitions_written=len(metadata.partition_to_write_stats),
        total_records_written=figures.records_written,
        total_update_records_written=figures.records_updated,
        total_errors=figures.errors,
    )


def commit_row(recorded: Recorded) -> CommitRow:
    plain = archived_commit_row(recorded)
    return CommitRow(
        action=recorded.instant.action.value,
        **{name: getattr(plain, name) for name in ArchivedCommitRow.__slots__},
    )


def stat_row(recorded: Recorded, partition: str, stat: WriteStat) -> StatRow:
    return StatRow(
        commit_time=recorded.instant.requested,
        state_transition_time=recorded.instant.completed,
        action=recorded.instant.action.value,
        partition=partition,
        file_id=stat.file_id,
        previous_commit=stat.prev_commit,
        num_writes=stat.num_writes,
        num_inserts=stat.num_inserts,
        num_deletes=stat.num_deletes,
        num_update_writes=stat.num_update_writes,
        total_errors=stat.total_write_errors,
        total_log_blocks=stat.total_log_blocks,
        total_corrupt_log_blocks=stat.total_corrupt_log_block,
        total_rollback_blocks=stat.total_rollback_blocks,
        total_log_records=stat.total_log_records,
        total_updated_records_compacted=stat.total_updated_records_compacted,
        total_bytes_written=stat.total_write_bytes,
    )
