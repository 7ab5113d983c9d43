"""`run_clustering` and `repair_clustering_plan`."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.prune import Pruned, PrunedFile
from lakewarden.engine.services.clustering.settings import (
    LAYOUT,
    REGEX,
    SELECTED,
    SORT_COLUMNS,
    LayoutStrategy,
)
from lakewarden.engine.table.config import PartitionField, PartitionKind
from lakewarden.procedures.conditions.row_filter import row_filter
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Column,
    DryRun,
    Options,
    SqlType,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import NeedDelete, listed, one_word, refuse_delete
from lakewarden.procedures.services.plan_call import (
    Cancellable,
    Instants,
    Op,
    PlanLimit,
    order_of,
    state_word,
)
from lakewarden.service_calls import PlanOutcome, ServiceRunner
from lakewarden.table import Table

_LAYOUTS: Mapping[str, LayoutStrategy] = {
    "linear": LayoutStrategy.LINEAR,
    "z-order": LayoutStrategy.ZORDER,
    "hilbert": LayoutStrategy.HILBERT,
}


def clustering_options(
    columns: Sequence[str],
    options: Mapping[str, str] | None,
    *,
    order: str | None,
    strategy: str | None,
    selected: str | None,
    pattern: str | None,
) -> Mapping[str, str]:
    """The settings of a call: arguments win over options, named partitions over a pattern."""
    given = dict(options or {})
    if order is not None:
        names = [_column(columns, name) for name in listed(order)]
        given[SORT_COLUMNS.key] = ",".join(names)
    if strategy is not None:
        given[LAYOUT.key] = _LAYOUTS[one_word("order_strategy", strategy, _LAYOUTS)].value
    if selected is not None:
        given[SELECTED.key] = selected
    if pattern is not None:
        given[REGEX.key] = pattern
    return given


def _column(columns: Sequence[str], name: str) -> str:
    """The column of that name in any case."""
    known = {column.lower(): column for column in columns}
    found = known.get(name.lower())
    if found is None:
        nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        raise InvalidRequest(
            "unknown_column",
            what=f"The table has no column {name!r} to sort by.",
            why=f"It has {', '.join(columns)}.",
            now=f"Did you mean {known[nearest[0]]!r}?" if nearest else "Choose one of these.",
            column=name,
        )
    return found


def matching_partitions(table: Table, predicate: str | None) -> tuple[str, ...] | None:
    """The partitions whose values meet a condition; none is asked for where there is none.

    Only values that paths tell can be asked for: any other column is refused by name.
    """
    if predicate is None or not predicate.strip():
        return None
    scheme, schema = table.config.partitions, table.schema
    columns = [
        _predicate_column(field, schema)
        for field in scheme.fields
        if field.kind is PartitionKind.SIMPLE
    ]
    meets = row_filter(predicate, columns)
    return tuple(
        path for path in table.partitions() if meets(_values(scheme.values(path), columns))
    )


def _predicate_column(field: PartitionField, schema: pa.Schema) -> Column:
    is_number = field.name in schema.names and pa.types.is_integer(schema.field(field.name).type)
    type_ = SqlType.BIGINT if is_number else SqlType.STRING
    return Column(field.name, type_, comment="", field=field.name)


def _values(texts: Mapping[str, str | None], columns: list[Column]) -> tuple[object, ...]:
    return tuple(_value(texts.get(column.name), column.type) for column in columns)


def _value(text: str | None, type_: SqlType) -> object:
    is_whole = type_ is SqlType.BIGINT and text is not None and text.lstrip("-").isdecimal()
    return int(text or "0") if is_whole else text


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


_DELETE = "delete"
# Hudi has two words for the same.
_CHECKED = ("validate_delete", "checkanddelete")


@procedure("repair_clustering_plan", is_mutating=True)
class RepairClusteringPlan(Call):
    """Take files out of a clustering plan that waits, such as unreadable ones.

    The plan is cancelled, and what is left of it published as a new one; the files stay in the
    table. It is a dry run unless `dry_run => false`. A row for each file.
    """

    table: TableName = None
    path: TablePath = None
    instant: Annotated[str, "The instant of the plan."]
    op: Annotated[
        str | None,
        (
            "delete: the named files (the default where files are named); validate_delete or "
            "checkanddelete: those that are not Parquet files."
        ),
    ] = None
    invalid_parquet_files: Annotated[str, "Names or addresses of files, separated by commas."] = ""
    validation_parallelism: Annotated[int, "Hudi's; there are as many threads as cores."] = 100
    need_delete: NeedDelete = False
    dry_run: DryRun = True
    backup: Annotated[
        bool, "Hudi's; Lakewarden overwrites no plan, so there is nothing to copy."
    ] = True
    allow_empty_plan: Annotated[bool, "Cancel the plan if nothing is left of it."] = False
    options: Options = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "Of the plan."]
        path: Annotated[str | None, "The address of the file; none if nothing is to go."]
        action: Annotated[
            str, "WOULD_REMOVE_FROM_PLAN, REMOVED_FROM_PLAN, NOT_FOUND_IN_PLAN or NOTHING_TO_DO"
        ]
        deleted: Annotated[bool, "Whether the file itself is gone: never."]
        reason: Annotated[str, "USER_REQUESTED, or NOT_PARQUET_FILE and what is wrong with it."]
        replaced_by: Annotated[str | None, "The instant of the new plan."]

    def run(self, caller: Caller) -> Iterable[Row]:
        refuse_delete("repair_clustering_plan", need_delete=self.need_delete)
        names = self._names()
        pruned = open_table(caller, self.table, self.path).prune_plan(
            self.instant,
            names,
            self.options,
            allow_empty=self.allow_empty_plan,
            dry_run=self.dry_run,
        )
        if not pruned.files:
            return [self._row(pruned, None)]
        return [self._row(pruned, file) for file in pruned.files]

    def _names(self) -> tuple[str, ...] | None:
        """The files that are named; None for those that are found."""
        named = listed(self.invalid_parquet_files)
        operation = one_word("op", self.op or _DELETE, (_DELETE, *_CHECKED))
        if operation in _CHECKED or (self.op is None and not named):
            return None
        if not named:
            raise InvalidRequest(
                "missing_argument",
                what="repair_clustering_plan needs invalid_parquet_files.",
                why="With op => 'delete' it names the files to remove from the plan.",
                now="Name the files, or use op => 'validate_delete' to find them.",
                argument="invalid_parquet_files",
            )
        return named

    def _row(self, pruned: Pruned, file: PrunedFile | None) -> Row:
        if file is None:
            action, reason = "NOTHING_TO_DO", "All files of the plan can be read."
        elif not file.is_planned:
            action, reason = "NOT_FOUND_IN_PLAN", "USER_REQUESTED"
        else:
            action = "WOULD_REMOVE_FROM_PLAN" if self.dry_run else "REMOVED_FROM_PLAN"
            reason = f"NOT_PARQUET_FILE: {file.broken}" if file.broken else "USER_REQUESTED"
        return self.Row(
            instant=pruned.instant,
            path=None if file is None else file.path,
            action=action,
            deleted=False,
            reason=reason,
            replaced_by=pruned.replaced_by,
        )
