"""`show_metadata_table_stats`: what the partitions of the metadata table take."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


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
