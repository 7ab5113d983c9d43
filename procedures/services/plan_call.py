"""What the calls that schedule and run plans share: their arguments, orders and rows."""

from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering import settings as clustering
from lakewarden.engine.services.compaction import settings as compaction
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, DryRun, Options, TableName, TablePath
from lakewarden.procedures.declaring.texts import listed, one_word
from lakewarden.service_calls import PlanOutcome, ServiceCall, ServiceOperation, ServiceRunner
from lakewarden.table_service_handle import TableServiceHandle

Op = Annotated[
    str | None,
    "schedule, execute, or scheduleAndExecute (the default); with instants, execute.",
]
Instants = Annotated[str | None, "Pending plans to execute, separated by commas."]
PlanLimit = Annotated[int | None, "The most plans to run, the oldest first."]
Cancellable = Annotated[
    bool | None, "Whether a new plan can be cancelled; without it the table's setting decides."
]


# Hudi's older word for doing both.
_RUN = "run"
# A call that names one of these wants it heeded; otherwise an explicit call waits for none.
_TRIGGERS = (
    compaction.TRIGGER,
    compaction.DELTA_COMMITS,
    compaction.DELTA_SECONDS,
    clustering.INLINE_MAX_COMMITS,
)


def order_of(
    op: str | None,
    instants: str | None,
    *,
    limit: int | None,
    cancellable: bool | None,
    dry_run: bool,
    options: Mapping[str, str] | None,
    partitions: tuple[str, ...] | None = None,
) -> ServiceCall:
    """The order that a call gives; instants that are named are executed."""
    named = listed(instants)
    operation = _operation(op, is_named=bool(named))
    if named and operation is not ServiceOperation.EXECUTE:
        raise InvalidRequest(
            "bad_argument",
            what=f"op => {op!r} contradicts instants.",
            why="Instants name existing plans, which a call can only execute.",
            now="Leave op out, or use op => 'execute'.",
            argument="op",
        )
    return ServiceCall(
        operation=operation,
        instants=named,
        limit=_positive(limit),
        cancellable=cancellable,
        partitions=partitions,
        honour_trigger=_names_trigger(options),
        dry_run=dry_run,
        options=options,
    )


def state_word(state: InstantState | None) -> str | None:
    """A state in the words of Hudi's timeline, as far as it has one."""
    return None if state is None else state.value.partition(",")[0].upper()


def _operation(op: str | None, *, is_named: bool) -> ServiceOperation:
    if op is None:
        return ServiceOperation.EXECUTE if is_named else ServiceOperation.SCHEDULE_AND_EXECUTE
    word = one_word("op", op, (*ServiceOperation, _RUN))
    return ServiceOperation.SCHEDULE_AND_EXECUTE if word == _RUN else ServiceOperation(word)


def _names_trigger(options: Mapping[str, str] | None) -> bool:
    return any(name in (options or {}) for setting in _TRIGGERS for name in setting.names)


def _positive(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise InvalidRequest(
            "bad_argument",
            what=f"limit => {limit} is not valid.",
            why="A limit is the largest number of plans to run.",
            now="Give a number above zero, or leave it out.",
            argument="limit",
        )
    return limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    timestamp: Annotated[str | None, "The instant of the plan; none where there is none."]
    operation_size: Annotated[int, "How many file groups the plan has."]
    state: Annotated[str | None, "REQUESTED, INFLIGHT, COMPLETED or ROLLED BACK"]
    rows_written_count: int | None
    files_count: int | None
    written_bytes: int | None
    seconds: float | None
    message: Annotated[str, "What the call did, or why it did nothing."]


def plan_row(one: PlanOutcome) -> PlanRow:
    done = one.execution
    return PlanRow(
        timestamp=one.instant,
        operation_size=one.operations,
        state=state_word(one.state),
        rows_written_count=None if done is None else done.rows_written,
        files_count=None if done is None else done.files,
        written_bytes=None if done is None else done.bytes_written,
        seconds=None if done is None else sum(done.seconds.values()),
        message=one.message,
    )


@dataclass(frozen=True, kw_only=True)
class PlanCall(Call, ABC):
    """A call about plans, with Hudi's arguments of a compaction."""

    op: Op = None
    table: TableName = None
    path: TablePath = None
    timestamp: Annotated[str | None, "One plan to execute, as in older versions of Hudi."] = None
    options: Options = None
    instants: Instants = None
    limit: PlanLimit = None
    cancellable: Cancellable = None
    dry_run: DryRun = False

    Row = PlanRow

    @property
    def order(self) -> ServiceCall:
        """What is wanted; one plan that is named by its time is executed."""
        return order_of(
            self.op if self.instants or not self.timestamp else "execute",
            self.instants or self.timestamp,
            limit=self.limit,
            cancellable=self.cancellable,
            dry_run=self.dry_run,
            options=self.options,
        )

    def executed(self, caller: Caller, handle: TableServiceHandle) -> Iterable[PlanRow]:
        """Run the call by a service; a row for each plan."""
        runner = ServiceRunner(handle, caller.spark, caller.check_interrupted)
        return map(plan_row, runner.run_call(self.order))
