"""`stats_wa`: write amplification, how much is written for each row that is updated."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.files.sizes import amplifications
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

TOTAL = "Total"


@procedure("stats_wa")
class StatsWa(Call):
    """Write amplification of all active writes together, then of each, newest first."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        commit_time: Annotated[str, "The instant of the write, or Total."]
        total_upserted: Annotated[int, "Rows that were updated."]
        total_written: Annotated[int, "Rows that were written."]
        write_amplification_factor: Annotated[str, "Written by updated; 0 without an update."]

    def run(self, caller: Caller) -> Iterable[Row]:
        history = open_table(caller, self.table, self.path).history()
        for instant, found in amplifications(history):
            yield self.Row(
                commit_time=instant or TOTAL,
                total_upserted=found.records_updated,
                total_written=found.records_written,
                write_amplification_factor="0" if found.factor is None else f"{found.factor:.2f}",
            )
