"""Executing pending plans: one by its instant, or all of a service, oldest first."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.execution.result import Execution, Failure, Result
from lakewarden.engine.services.planning.selection import Reason, Refusal
from lakewarden.engine.services.planning.table_service import TableService
from lakewarden.engine.transaction.start import dry_run_start
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_writing


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


def pending_plans(context: Context, service: TableService) -> tuple[str, ...]:
    """The instants of a service's pending plans, oldest first."""
    active = load_for_writing(context).timeline.active
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
