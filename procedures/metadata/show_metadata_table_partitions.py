"""`show_metadata_table_partitions`: the partitions of the table that its metadata table lists."""

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
