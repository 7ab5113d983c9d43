"""`show_metadata_column_stats_overlap`: how well a table's layout lets queries skip files."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.column_statistics import Overlap
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Named,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.metadata.arguments import PartitionPaths, TargetColumns


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
