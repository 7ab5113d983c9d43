"""`lakewarden_partitions`: the partitions of a table, and what is in them."""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("lakewarden_partitions")
class Partitions(Call):
    """The partitions of a table with what a read finds in them."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_groups_count: int
        base_files_count: int
        log_files_count: int
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, None, self.path)
        slices = table.file_slices()
        for partition in table.partitions():
            inside = [slice_ for slice_ in slices if slice_.partition == partition]
            yield self.Row(
                partition=partition,
                file_groups_count=len(inside),
                base_files_count=sum(slice_.base_file is not None for slice_ in inside),
                log_files_count=sum(len(slice_.log_files) for slice_ in inside),
                bytes=sum(slice_.size_bytes for slice_ in inside),
            )
