"""Orders: what a service is to do with which plans, and what became of each of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from lakewarden.context_factory import Options
from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.services.execution.execute import Execution
from lakewarden.engine.services.planning.plan_request import Refusal
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.previews import Preview
from lakewarden.table_service_handle import Plan, TableServiceHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HELD = "plan_held"
_NOT_WANTED = "the call that scheduled it was interrupted, or failed"


class ServiceOperation(StrEnum):
    """Which part of the work is wanted."""

    SCHEDULE = "schedule"
    EXECUTE = "execute"
    SCHEDULE_AND_EXECUTE = "scheduleAndExecute"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """What is wanted of a service."""

    operation: ServiceOperation
    # These pending plans only; all of them if none is named.
    instants: tuple[str, ...] = ()
    # At most so many plans are executed, the oldest first.
    limit: int | None = None
    cancellable: bool | None = None
    partitions: tuple[str, ...] | None = None
    honour_trigger: bool = False
    dry_run: bool = False
    options: Options = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutcome:
    """What became of one plan, or why there is none."""

    instant: str | None = None
    state: InstantState | None = None
    operations: int = 0
    partitions: tuple[str, ...] = ()
    execution: Execution | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class ServiceRunner:
    """Runs plans by the service of a table, for a caller that may cancel the call."""

    handle: TableServiceHandle
    spark: "SparkSession | None"
    check_wanted: Callable[[], None]

    def run_call(self, order: ServiceCall) -> tuple[PlanOutcome, ...]:
        """Run a call of a service; the newest plan stands first.

        A plan that fails is reported among the others; if all fail, the first failure is raised. A
        plan that another process is running is no failure.
        """
        pending = self._pending(order)
        if order.operation is ServiceOperation.EXECUTE:
            executed = self._executed(pending[: order.limit], order)
            return executed or (PlanOutcome(message="No plan is pending. Schedule one."),)
        done = self._schedule(order)
        if order.operation is ServiceOperation.SCHEDULE:
            return (_reported(done),)
        chosen = (*pending, *([] if isinstance(done, Refusal) else [done]))[: order.limit]
        try:
            executed = self._executed(chosen, order)
        except BaseException:
            self._withdraw(done)
            raise
        return (
            executed if done in chosen or (executed and not done) else (_reported(done), *executed)
        )

    def _schedule(self, order: ServiceCall) -> Plan | Preview | Refusal:
        return self.handle.schedule(
            order.cancellable,
            partitions=order.partitions,
            honour_trigger=order.honour_trigger,
            dry_run=order.dry_run,
            options=order.options,
        )

    def _pending(self, order: ServiceCall) -> tuple[Plan, ...]:
        """The plans to execute, oldest first; each that is named must be there."""
        if order.operation is ServiceOperation.SCHEDULE:
            return ()
        pending = self.handle.pending()
        strangers = sorted(set(order.instants) - {plan.instant for plan in pending})
        if strangers:
            raise _not_pending(strangers)
        return tuple(p for p in pending if not order.instants or p.instant in order.instants)

    def _withdraw(self, done: Plan | Preview | Refusal) -> None:
        """Leave no plan behind that was made for one who does not want it any more."""
        if not (isinstance(done, Plan) and done.cancellable):
            return
        if self.handle.state_of(done.instant) is InstantState.REQUESTED:
            self.handle.cancel(done.instant, _NOT_WANTED)

    def _executed(
        self, plans: Sequence[Plan | Preview], order: ServiceCall
    ) -> tuple[PlanOutcome, ...]:
        failures: list[LakewardenError] = []
        reported = [self._tried(plan, order, failures) for plan in plans]
        if failures and len(failures) == len(reported):
            raise failures[0]
        return tuple(reversed(reported))

    def _tried(
        self, plan: Plan | Preview, order: ServiceCall, failures: list[LakewardenError]
    ) -> PlanOutcome:
        self.check_wanted()
        if isinstance(plan, Preview) or order.dry_run:
            return _of_plan(plan, InstantState.COMPLETED, f"{plan}; it would run")
        try:
            spark = self.handle.workers_for(plan, self.spark, order.options)
            done = self.handle.execute(plan.instant, order.options, spark=spark)
        except LakewardenError as error:
            # The failure may come from a cancelled call, whose answer is not wanted.
            self.check_wanted()
            if error.code != _HELD:
                failures.append(error)
            return _of_plan(plan, self.handle.state_of(plan.instant), str(error))
        (execution,) = done.executions
        return _of_plan(plan, InstantState.COMPLETED, str(execution), execution)


def _reported(done: Plan | Preview | Refusal) -> PlanOutcome:
    if isinstance(done, Refusal):
        return PlanOutcome(message=str(done))
    return _of_plan(done, InstantState.REQUESTED, str(done))


def _of_plan(
    plan: Plan | Preview, state: InstantState, message: str, execution: Execution | None = None
) -> PlanOutcome:
    return PlanOutcome(
        instant=plan.instant if isinstance(plan, Plan) else None,
        state=state,
        operations=plan.operations,
        partitions=plan.partitions,
        execution=execution,
        message=message,
    )


def _not_pending(strangers: Sequence[str]) -> InvalidRequest:
    return InvalidRequest(
        "unknown_plan",
        what=f"These plans are not pending: {', '.join(strangers)}.",
        why="A call runs all named plans or none; nothing was changed.",
        now="CALL show_plans lists what is pending.",
        instants=tuple(strangers),
    )
