"""`run_clustering`: make large files of small ones, and sort their rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.services.arguments import Cancellable, Instants, Op, PlanLimit
from lakewarden.procedures.services.clustering_options import clustering_options
from lakewarden.procedures.services.orders import order_of, state_word
from lakewarden.procedures.services.partition_predicate import matching_partitions
from lakewarden.service_calls import PlanOutcome, ServiceRunner

_NOT_ASKED_FOR = "*"


@procedure("run_clustering", is_mutating=True)
class RunClustering(Call):
    """Make large files of small ones, and sort rows if asked; a row for each plan.

    Without op it schedules a plan and runs it with the pending ones, oldest first.
    A call waits for no trigger unless its options name one. The newest plan's row stands first.
    """

    table: TableName = None
    path: TablePath = None
    predicate: Annotated[str | None, "A condition on partition columns: only these."] = None
    order: Annotated[str | None, "Columns to sort rows by, separated by commas."] = None
    show_involved_partition: Annotated[bool, "Name the partitions of each plan."] = False
    op: Op = None
    order_strategy: Annotated[str | None, "linear, z-order or hilbert"] = None
    options: Options = None
    instants: Instants = None
    selected_partitions: Annotated[str | None, "Partitions to cluster, separated by commas."] = None
    partition_regex_pattern: Annotated[str | None, "What a partition's path has to match."] = None
    limit: PlanLimit = None
    cancellable: Cancellable = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        timestamp: Annotated[str | None, "The instant of the plan; none where there is none."]
        input_group_size: Annotated[int, "How many groups of files the plan has."]
        state: Annotated[str | None, "REQUESTED, INFLIGHT, COMPLETED or ROLLED BACK"]
        involved_partitions: Annotated[str, "`*` unless asked for."]
        rows_written_count: int | None
        files_count: int | None
        written_bytes: int | None
        seconds: float | None
        message: Annotated[str, "What the call did, or why it did nothing."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        order = order_of(
            self.op,
            self.instants,
            limit=self.limit,
            cancellable=self.cancellable,
            dry_run=self.dry_run,
            partitions=matching_partitions(table, self.predicate),
            options=clustering_options(
                table.schema.names,
                self.options,
                order=self.order,
                strategy=self.order_strategy,
                selected=None if self.predicate else self.selected_partitions,
                pattern=None if self.predicate else self.partition_regex_pattern,
            ),
        )
        runner = ServiceRunner(table.clustering, caller.spark, caller.check_interrupted)
        return map(self._row, runner.run_call(order))

    def _row(self, one: PlanOutcome) -> Row:
        done = one.execution
        named = ",".join(one.partitions) if self.show_involved_partition else _NOT_ASKED_FOR
        return self.Row(
            timestamp=one.instant,
            input_group_size=one.operations,
            state=state_word(one.state),
            involved_partitions=named,
            rows_written_count=None if done is None else done.rows_written,
            files_count=None if done is None else done.files,
            written_bytes=None if done is None else done.bytes_written,
            seconds=None if done is None else sum(done.seconds.values()),
            message=one.message,
        )
