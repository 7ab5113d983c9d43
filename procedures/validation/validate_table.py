"""`validate_table`: check a table against itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.texts import listed


@procedure("validate_table")
class ValidateTable(Call):
    """Check the timeline, files, metadata table, indexes, ledgers and keys of a table.

    It reads the keys of all rows, and the footers of all files.
    """

    table: TableName = None
    checks: Annotated[
        str,
        "Separated by commas: timeline, files, metadata_table, record_index, column_stats, ledgers,"
        " keys; all without any.",
    ] = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        check: str
        partition: str | None
        object: Annotated[str | None, "The file, instant or key that it is about."]
        verdict: Annotated[str, "ok, failed or skipped"]
        detail: str

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, self.table, self.path).validate(listed(self.checks)):
            yield self.Row(
                check=one.check,
                partition=one.finding.partition,
                object=one.finding.object,
                verdict=str(one.finding.verdict),
                detail=one.finding.detail,
            )
