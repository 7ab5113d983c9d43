"""`show_commits` and other calls about completed writes: figures, files, differences."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.services.inspection.history.history import (
    Lead,
    Recorded,
    compare,
    decode_write,
    figures_of,
    figures_of_write,
    stats_of,
)
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.history.arguments import OfInstant


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


@procedure("show_commits")
class ShowCommits(Call):
    """The completed writes on the active timeline, newest first; a row each."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    Row = CommitRow

    def run(self, caller: Caller) -> Iterable[CommitRow]:
        history = open_table(caller, self.table, self.path).history()
        return map(commit_row, history.completed(COMPLETED_WRITES))


@procedure("show_commits_metadata")
class ShowCommitsMetadata(Call):
    """What completed writes did to each file group, the newest write first."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    Row = StatRow

    def run(self, caller: Caller) -> Iterable[StatRow]:
        history = open_table(caller, self.table, self.path).history()
        for recorded in history.completed(COMPLETED_WRITES):
            for partition, stat in stats_of(decode_write(recorded)):
                yield stat_row(recorded, partition, stat)


@procedure("show_commit_files")
class ShowCommitFiles(Call):
    """The file groups that a write has written to; a row each."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        partition_path: str
        file_id: str
        previous_commit: Annotated[str | None, "That of the file it has replaced; null as a text."]
        total_records_updated: int
        total_records_written: int
        total_bytes_written: int
        total_errors: int
        file_size: Annotated[int, "In bytes."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        for partition, stat in stats_of(decode_write(recorded)):
            yield self.Row(
                action=recorded.instant.action.value,
                partition_path=partition,
                file_id=stat.file_id,
                previous_commit=stat.prev_commit,
                total_records_updated=stat.num_update_writes,
                total_records_written=stat.num_writes,
                total_bytes_written=stat.total_write_bytes,
                total_errors=stat.total_write_errors,
                file_size=stat.file_size_in_bytes,
            )


@procedure("show_commit_partitions")
class ShowCommitPartitions(Call):
    """The partitions that a write has written to; a row each."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        partition_path: str
        total_files_added: Annotated[int, "File groups that it created."]
        total_files_updated: Annotated[int, "Existing file groups that it changed."]
        total_records_inserted: int
        total_records_updated: int
        total_bytes_written: int
        total_errors: int

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        written = decode_write(recorded).partition_to_write_stats
        for partition in sorted(written):
            figures = figures_of(written[partition])
            yield self.Row(
                action=recorded.instant.action.value,
                partition_path=partition,
                total_files_added=figures.files_added,
                total_files_updated=figures.files_updated,
                total_records_inserted=figures.records_inserted,
                total_records_updated=figures.records_updated,
                total_bytes_written=figures.bytes_written,
                total_errors=figures.errors,
            )


@procedure("show_commit_write_stats")
class ShowCommitWriteStats(Call):
    """What a write has written, in all; one row."""

    table: TableName = None
    limit: Limit = 10
    instant_time: OfInstant
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        action: str
        total_bytes_written: int
        total_records_written: int
        avg_record_size: Annotated[int, "In bytes, rounded up; 0 where nothing was written."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        recorded = history.named(self.instant_time, COMPLETED_WRITES)
        figures = figures_of_write(decode_write(recorded))
        yield self.Row(
            action=recorded.instant.action.value,
            total_bytes_written=figures.bytes_written,
            total_records_written=figures.records_written,
            avg_record_size=figures.average_record_bytes,
        )


@procedure("show_commit_extra_metadata")
class ShowCommitExtraMetadata(Call):
    """The notes of completed writes, the newest write first; a row for each key."""

    table: TableName = None
    limit: Limit = 100
    instant_time: Annotated[str | None, "Only this write's; it may be archived."] = None
    metadata_key: Annotated[str | None, "Only the notes under this key."] = None
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: str
        action: str
        metadata_key: str
        metadata_value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        writes = (
            iter((history.named(self.instant_time, COMPLETED_WRITES),))
            if self.instant_time
            else history.completed(COMPLETED_WRITES)
        )
        for recorded in writes:
            for key, value in sorted(decode_write(recorded).extra_metadata.items()):
                if self.metadata_key in (None, "", key):
                    yield self.Row(
                        instant_time=recorded.instant.requested,
                        action=recorded.instant.action.value,
                        metadata_key=key,
                        metadata_value=value,
                    )


@procedure("commits_compare")
class CommitsCompare(Call):
    """Compare the newest writes of two tables; one row that says which lacks what."""

    table: Annotated[str, "The table's name in the catalog, or its path."]
    path: Annotated[str, "The path of the table that it is compared with."]

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        compare_detail: Annotated[str, "In words, with the instants to catch up with."]

    def run(self, caller: Caller) -> Iterable[Row]:
        one = open_table(caller, self.table, None)
        other = open_table(caller, None, self.path)
        lead = compare(one.history(), other.history())
        yield self.Row(compare_detail=_said(one.config.name or self.table, lead))


def _said(name: str, lead: Lead) -> str:
    place = "ahead" if lead.is_ahead else "behind"
    instants = ", ".join(lead.instants)
    return (
        f"Source {name} is {place} by {len(lead.instants)} commits."
        f" Commits to catch up - [{instants}]"
    )
