"""`show_metadata_table_column_stats`: the ranges of columns in files."""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed, value_text
from lakewarden.procedures.metadata.arguments import PartitionPaths, TargetColumns


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
