"""`show_metadata_table_files`: the files that the metadata table lists."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.paths import joined


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
