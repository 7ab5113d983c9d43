"""`validate_metadata_table_files`: the metadata table against a listing of the storage."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


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
