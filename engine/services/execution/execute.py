"""Executing pending plans: one attempt at one plan, from the guard to the commit.

Results: what came of executing plans.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakewarden.engine.detection.watch import watch_plan
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.run.processes import stopping_on_signal
from lakewarden.engine.services.planning.plan_request import Reason, Refusal
from lakewarden.engine.services.planning.schedule import TableService
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Receipt, commit
from lakewarden.engine.transaction.start import dry_run_start, start
from lakewarden.engine.transaction.state.context import Context, Service, load_for_writing
from lakewarden.engine.write.planner import Phases


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Execution(Shown):
    """One plan that has completed; `errors` say what is left to be done all the same."""

    instant: str
    service: Service
    # When it completed; someone else may have done that before.
    completed: str
    was_completed_before: bool = False
    rows_written: int = 0
    files: int = 0
    file_groups: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.was_completed_before:
            return f"{self.service} {self.instant}: was already complete"
        return (
            f"{self.service} {self.instant}: {self.rows_written} rows in {self.files} files,"
            f" {self.bytes_written} bytes, {sum(self.seconds.values()):.2f} s"
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that could not be executed, and why."""

    instant: str
    cause: Exception


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(Shown):
    """The result of a run: plans executed, plans that failed, or why there was nothing."""

    service: Service
    executions: tuple[Execution, ...] = ()
    failures: tuple[Failure, ...] = ()
    refusal: Refusal | None = None
    # Plans that were left for another time, as a limit or the deadline was reached.
    left: tuple[str, ...] = ()
    # Plans that a dry run would have started with.
    would_run: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [str(one) for one in self.executions]
        lines += [f"{self.service} {instant}: would run" for instant in self.would_run]
        lines += [f"{self.service} {one.instant} failed: {one.cause}" for one in self.failures]
        lines += [f"{self.service} {instant}: left for later" for instant in self.left]
        return "\n".join(lines or [str(self.refusal)])

    @property
    def instants(self) -> tuple[str, ...]:
        return tuple(one.instant for one in self.executions)

    @property
    def rows_written(self) -> int:
        return sum(one.rows_written for one in self.executions)

    @property
    def files(self) -> int:
        return sum(one.files for one in self.executions)

    @property
    def bytes_written(self) -> int:
        return sum(one.bytes_written for one in self.executions)


_NOT_PUBLISHED = (
    "It is committed, but the storage failed before it was published: the next operation on "
    "the table publishes it."
)


def execute(context: Context, service: TableService, instant: str) -> Execution:
    """Execute a pending plan; one that has completed already is no error.

    An attempt that fails or is interrupted is aborted. An immutable plan then waits for the next
    attempt, a cancellable one is taken off the timeline.
    """
    with stopping_on_signal():
        return _attempt_plan(context, service, instant)


def _attempt_plan(context: Context, service: TableService, instant: str) -> Execution:
    phases = Phases(context.ports.clock, context.ports.events)
    with phases("start"):
        started = start(context, instant, service.service)
    if started.completed is not None:
        return Execution(
            instant=instant,
            service=service.service,
            completed=started.completed.completed or "",
            was_completed_before=True,
        )
    attempt = started.attempt
    assert attempt is not None
    with attempt:
        with aborting_on_error(context, attempt), phases("work"):
            snapshot = load_for_writing(context)
            plan = _plan(context, service, snapshot, attempt)
            watch_plan(context, snapshot, attempt, plan)
            outcome = service.work(context, attempt, plan)
        with phases("commit"):
            receipt = commit(context, attempt, outcome)
    return _execution(service, receipt, outcome.metadata, phases)


def _plan(context: Context, service: TableService, snapshot: Snapshot, attempt: Attempt) -> bytes:
    """The plan as it is published."""
    files = snapshot.pending(attempt.instant)
    requested = None if files is None else files.requested
    if requested is None:
        # The ledger names the process that has taken over or cancelled it meanwhile.
        attempt.check_claim()
        raise InvalidRequest(
            "unknown_plan",
            what=f"The plan of {service.service} {attempt.instant} is gone.",
            why="Another engine has rolled it back.",
            now="Look at the timeline for its state.",
            instant=attempt.instant,
        )
    return context.storage.read(requested.entry.path)


def _execution(
    service: TableService, receipt: Receipt, metadata: CommitMetadata, phases: Phases
) -> Execution:
    stats = [stat for group in metadata.partition_to_write_stats.values() for stat in group]
    return Execution(
        instant=receipt.instant,
        service=service.service,
        completed=receipt.completion_time,
        rows_written=sum(stat.num_writes for stat in stats),
        files=len(stats),
        file_groups=len({(stat.partition_path, stat.file_id) for stat in stats}),
        bytes_written=sum(stat.file_size_in_bytes for stat in stats),
        seconds=phases.seconds,
        errors=() if receipt.is_published else (_NOT_PUBLISHED,),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """How much a run takes on; what is under way is finished in any case."""

    plans: int | None = None
    # Seconds after which no further plan is started.
    deadline: float | None = None


# A plan that another process holds is no failure: that process runs it.
_HELD = "plan_held"
# Nor is one that another process has ended since the pending ones were listed.
_ENDED = "unknown_plan"


def pending_plans(
    context: Context, service: TableService, seen: Snapshot | None = None
) -> tuple[str, ...]:
    """The instants of a service's pending plans, oldest first."""
    active = (seen or load_for_writing(context)).timeline.active
    return tuple(instant.requested for instant in active.pending((service.service.action,)))


def run_plan(context: Context, service: TableService, instant: str) -> Result:
    """Execute one plan; any obstacle is raised as an error."""
    done = execute(context, service, instant)
    return Result(service=service.service, executions=(done,))


def dry_run_execution(
    context: Context, service: TableService, limits: RunLimits, instant: str | None = None
) -> Result:
    """The plans that a run would begin with, one or the pending ones; nothing is changed."""
    if instant is not None:
        dry_run_start(context, instant, service.service)
        return Result(service=service.service, would_run=(instant,))
    pending = pending_plans(context, service)
    if not pending:
        return Result(service=service.service, refusal=_nothing(service))
    started: list[str] = []
    failed: list[Failure] = []
    left: list[str] = []
    for plan in pending:
        if _is_over(limits, len(started) + len(failed), 0):
            left.append(plan)
            continue
        try:
            dry_run_start(context, plan, service.service)
            started.append(plan)
        except LakewardenError as error:
            _set_aside(plan, error, failed, left)
    return Result(
        service=service.service,
        would_run=tuple(started),
        failures=tuple(failed),
        left=tuple(left),
    )


def run_pending(
    context: Context,
    service: TableService,
    limits: RunLimits,
    context_of: Callable[[str], Context] | None = None,
) -> Result:
    """Execute the pending plans; one that fails does not keep the others from being tried.

    If all fail, the first failure is raised. Each plan may have a context of its own.
    """
    pending = pending_plans(context, service)
    if not pending:
        return Result(service=service.service, refusal=_nothing(service))
    began = context.ports.clock.elapsed_seconds()
    done: list[Execution] = []
    failed: list[Failure] = []
    left: list[str] = []
    for number, instant in enumerate(pending):
        spent = context.ports.clock.elapsed_seconds() - began
        if _is_over(limits, len(done) + len(failed), spent):
            left += pending[number:]
            break
        try:
            own = context if context_of is None else context_of(instant)
            done.append(execute(own, service, instant))
        except LakewardenError as error:
            _set_aside(instant, error, failed, left)
    if failed and not done:
        raise failed[0].cause
    return Result(
        service=service.service,
        executions=tuple(done),
        failures=tuple(failed),
        refusal=None if done else _none_started(service, left),
        left=tuple(left),
    )


def _set_aside(plan: str, error: LakewardenError, failed: list[Failure], left: list[str]) -> None:
    if error.code == _HELD:
        left.append(plan)
    elif error.code != _ENDED:
        failed.append(Failure(plan, error))


def _is_over(limits: RunLimits, tried: int, seconds: float) -> bool:
    is_enough = limits.plans is not None and tried >= limits.plans
    return is_enough or (limits.deadline is not None and seconds >= limits.deadline)


def _nothing(service: TableService) -> Refusal:
    return Refusal(
        service=service.service,
        reason=Reason.NOTHING_TO_DO,
        why="No plan is pending. Schedule one first.",
    )


def _none_started(service: TableService, left: list[str]) -> Refusal:
    if not left:
        return _nothing(service)
    return Refusal(
        service=service.service,
        reason=Reason.HELD_BY_PLAN,
        why=(
            f"Nothing was started: {len(left)} pending plans are running elsewhere or left "
            "for later."
        ),
    )
