"""`stats_file_sizes` and `stats_wa`: sizes of files, and how much each write changed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.files.slice_view import Spread, amplifications, spreads
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Named,
    TableName,
    TablePath,
    procedure,
)

ALL = "ALL"


@procedure("stats_file_sizes")
class StatsFileSizes(Call):
    """The sizes of the files there are, in bytes: of all, then by write, newest first."""

    table: TableName = None
    partition_path: Annotated[
        str, "Only partitions whose path is like this: 'city=O*'; all without it."
    ] = ""
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        commit_time: Annotated[str, "The instant of the write, or ALL."]
        min: int
        tenth: Annotated[float, "A tenth of the files is not larger.", Named("10th")]
        median: Annotated[float, "Half of the files are not larger.", Named("50th")]
        avg: float
        ninety_fifth: Annotated[float, "19 of 20 files are not larger.", Named("95th")]
        max: int
        num_files: int
        std_dev: Annotated[float, "The standard deviation, as of a sample."]

    def run(self, caller: Caller) -> Iterable[Row]:
        state = open_table(caller, self.table, self.path).state()
        for instant, spread in spreads(state, self.partition_path):
            yield _row(instant or ALL, spread)


def _row(commit_time: str, spread: Spread) -> StatsFileSizes.Row:
    return StatsFileSizes.Row(
        commit_time=commit_time,
        min=spread.sizes[0],
        tenth=spread.quantile(0.1),
        median=spread.quantile(0.5),
        avg=spread.average,
        ninety_fifth=spread.quantile(0.95),
        max=spread.sizes[-1],
        num_files=len(spread.sizes),
        std_dev=spread.deviation,
    )


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
