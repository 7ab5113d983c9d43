"""The metadata table: make, delete, show and validate it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.column_statistics import Overlap
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Also,
    Call,
    DryRun,
    Filter,
    Limit,
    Named,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, value_text

PartitionPaths = Annotated[str, "Paths of partitions, separated by commas; all without any."]
TargetColumns = Annotated[
    str, "Columns, separated by commas; all without any.", Also("targetColumns")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What was done, or why nothing was."""

    result: str


@procedure("create_metadata_table", is_mutating=True)
class CreateMetadataTable(Call):
    """Make the metadata table of a table that has none, from its files, while no write runs."""

    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        table = open_table(caller, self.table, self.path)
        present = table.config.metadata_partitions
        if present:
            yield ResultRow(result=f"It already exists, with {', '.join(present)}.")
            return
        made = table.create_metadata_table(dry_run=self.dry_run)
        verb = "Would create" if self.dry_run else "Created"
        yield ResultRow(result=f"{verb} the metadata table with {', '.join(made)}.")


@procedure("init_metadata_table", is_mutating=True)
class InitMetadataTable(Call):
    """Add what the metadata table lacks of what a new one has; it must be there."""

    table: TableName = None
    read_only: Annotated[bool, "Only check that it can be opened."] = False
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        table = open_table(caller, self.table, self.path)
        present = [one.partition for one in table.metadata_sizes()]
        if self.read_only:
            yield ResultRow(result=f"It can be opened; it has {', '.join(present)}.")
            return
        made = table.create_metadata_table(dry_run=self.dry_run)
        verb = "Would add" if self.dry_run else "Added"
        done = f"{verb} {', '.join(made)}." if made else "Nothing to do: it is complete."
        yield ResultRow(result=done)


@procedure("delete_metadata_table", is_mutating=True)
class DeleteMetadataTable(Call):
    """Remove the metadata table with all indexes, while no write runs; readers then list files."""

    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = ResultRow

    def run(self, caller: Caller) -> Iterable[ResultRow]:
        gone = open_table(caller, self.table, self.path).delete_metadata_table(dry_run=self.dry_run)
        verb = "Would remove" if self.dry_run else "Removed"
        done = f"{verb} the metadata table with {', '.join(gone)}." if gone else "There is none."
        yield ResultRow(result=done)


@procedure("show_metadata_table_partitions")
class ShowMetadataTablePartitions(Call):
    """Show the partitions that the metadata table lists."""

    table: TableName = None
    path: TablePath = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str

    def run(self, caller: Caller) -> Iterable[Row]:
        listing = open_table(caller, self.table, self.path).metadata_listing()
        return (self.Row(partition=path) for path in listing.partitions())


@procedure("show_metadata_table_stats")
class ShowMetadataTableStats(Call):
    """Show how many files each partition of the metadata table has, and how large they are."""

    table: TableName = None
    path: TablePath = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        stat_key: Annotated[str, "A partition of the metadata table, and what is counted."]
        stat_value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, self.table, self.path).metadata_sizes():
            figures = {
                "fileGroupCount": one.file_groups_count,
                "baseFileCount": one.base_files_count,
                "totalBaseFileSizeInBytes": one.base_bytes,
                "logFileCount": one.log_files_count,
                "totalLogFileSizeInBytes": one.log_bytes,
            }
            for name, figure in figures.items():
                yield self.Row(stat_key=f"{one.partition}.{name}", stat_value=str(figure))


@procedure("validate_metadata_table_files")
class ValidateMetadataTableFiles(Call):
    """Show where the metadata table and the storage differ about the table's files.

    Files of writes that have not ended are skipped: the metadata table gets them at the commit.
    """

    table: TableName = None
    verbose: Annotated[bool, "Files on which they agree, too."] = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_name: str
        is_present_in_fs: bool
        is_present_in_metadata: bool
        fs_size: int | None
        metadata_size: int | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for file in open_table(caller, self.table, self.path).compared_files():
            if self.verbose or not file.is_same:
                yield self.Row(
                    partition=file.partition,
                    file_name=file.name,
                    is_present_in_fs=file.storage_bytes is not None,
                    is_present_in_metadata=file.metadata_bytes is not None,
                    fs_size=file.storage_bytes,
                    metadata_size=file.metadata_bytes,
                )


@procedure("show_metadata_table_column_stats")
class ShowMetadataTableColumnStats(Call):
    """Show what the metadata table knows of the columns of each file that a read sees."""

    table: TableName = None
    path: TablePath = None
    partition: PartitionPaths = ""
    target_columns: TargetColumns = ""
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        file_name: str
        column_name: str
        min_value: str | None
        max_value: str | None
        null_number: int

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        found = table.column_statistics(listed(self.partition), listed(self.target_columns))
        for one in found:
            yield self.Row(
                file_name=one.file_name,
                column_name=one.column,
                min_value=value_text(one.range.minimum),
                max_value=value_text(one.range.maximum),
                null_number=one.range.null_count,
            )


@procedure("show_metadata_column_stats_overlap")
class ShowMetadataColumnStatsOverlap(Call):
    """Show how many base files of a partition have to be read for one value of a column.

    Looked at are all bounds of the files: the fewer files have one of them in their range, the
    better a query on the column skips files.
    """

    table: TableName = None
    path: TablePath = None
    partition: PartitionPaths = ""
    target_columns: TargetColumns = ""
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: Annotated[str, Named("Partition path")]
        column: Annotated[str, Named("Field name")]
        average: Annotated[float, Named("Average overlap")]
        most: Annotated[int, Named("Maximum file overlap")]
        files_count: Annotated[int, Named("Total file number")]
        at_50_percent: Annotated[int, Named("50% overlap")]
        at_75_percent: Annotated[int, Named("75% overlap")]
        at_95_percent: Annotated[int, Named("95% overlap")]
        at_99_percent: Annotated[int, Named("99% overlap")]
        values_count: Annotated[int, Named("Total value number")]

    def run(self, caller: Caller) -> Iterable[Overlap]:
        table = open_table(caller, self.table, self.path)
        return table.column_overlaps(listed(self.partition), listed(self.target_columns))


def joined(partition: str, name: str) -> str:
    """The path of a file below the table; a table without partitions has its files at the top."""
    return f"{partition}/{name}" if partition else name


@procedure("show_metadata_table_files")
class ShowMetadataTableFiles(Call):
    """Show the files that the metadata table lists, of one partition or of all."""

    table: TableName = None
    path: TablePath = None
    partition: Annotated[str | None, "The path of a partition; all without one."] = None
    limit: Limit = 100
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        file_path: Annotated[str, "Below the table's path."]

    def run(self, caller: Caller) -> Iterable[Row]:
        listing = open_table(caller, self.table, self.path).metadata_listing()
        chosen = (self.partition,) if self.partition else None
        for partition, files in listing.files(chosen).items():
            for file in files:
                yield self.Row(file_path=joined(partition, file.name))
