"""One service as users call it: `table.compaction.schedule()`, `plan.run()`, `plan.cancel()`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from lakewarden.call_checks import (
    at_least_one,
    instant_text,
    parameters_of,
    partition_paths,
    refuse_limit,
    seconds,
    yes_or_no,
)
from lakewarden.context_factory import ContextFactory, Options
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.kernel.shown import Listed, Shown
from lakewarden.engine.read.merge.predicate import Filter
from lakewarden.engine.services.execution.execute import (
    Result,
    RunLimits,
    dry_run_execution,
    pending_plans,
    run_pending,
    run_plan,
)
from lakewarden.engine.services.inspection.state.plans import (
    Explained,
    Verdict,
    explain_draft,
    explain_groups,
    explain_plan,
    explain_skipped,
)
from lakewarden.engine.services.inspection.state.shape import PlanShape, shape_in, shape_of
from lakewarden.engine.services.options import SPARK_BYTES_MIN
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest, Refusal, Skipped
from lakewarden.engine.services.planning.schedule import (
    Scheduled,
    TableService,
    draft,
    dry_run_preemption,
    schedule,
)
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import InstantFiles
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.cancel.cancel import Cancellation, cancel
from lakewarden.engine.transaction.state.context import (
    Context,
    Service,
    is_cancellable,
    load_for_writing,
    pending_ledgers,
)
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import pending_state
from lakewarden.engine.transaction.state.rollback_plans import (
    completed_rollback_of,
    pending_rollbacks,
)
from lakewarden.previews import Preview, extent_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNKNOWN = "unknown_plan"
CANCELLED_ON_REQUEST = "cancelled on request"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Shown):
    """A plan on the timeline."""

    SHOWN: ClassVar = ("instant", "service", "cancellable", "partitions", "input_bytes")

    instant: str
    service: Service
    cancellable: bool
    groups: frozenset[FileGroupId]
    missing_partitions: tuple[str, ...] = ()
    # What Hudi counts of it: operations of a compaction, groups of a clustering.
    operations: int = 0
    # As its planner reckoned; None where it does not say.
    input_bytes: int | None = None
    # What scheduling has skipped, why it looked at these partitions, which cancellable plans made
    # room for it; known only to the process that scheduled it.
    skipped: tuple[Skipped, ...] = ()
    scope: str = ""
    preempted: tuple[str, ...] = ()
    _handle: "TableServiceHandle" = field(repr=False, compare=False)

    def __str__(self) -> str:
        extent = extent_of(self.groups, cancellable=self.cancellable)
        cancelled = f"; cancelled for it: {', '.join(self.preempted)}" if self.preempted else ""
        return f"{self.service} {self.instant}: {extent}{cancelled}"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions of its file groups."""
        return tuple(sorted({group.partition for group in self.groups}))

    @property
    def state(self) -> str:
        """The present state of the plan."""
        return self._handle.state_of(self.instant).value

    def explain(self) -> Listed[Explained]:
        """What the plan takes and what it skips, with reasons; also after its end."""
        reported = {one.partition for one in self.skipped}
        rows = self._handle.explained(self)
        taken = [x for x in rows if x.verdict is Verdict.CHOSEN or x.partition not in reported]
        return Listed((*taken, *explain_skipped(self.skipped)))

    def run(
        self,
        spark: "SparkSession | None" = None,
        options: Options = None,
        *,
        dry_run: bool = False,
        **keywords: object,
    ) -> Result:
        """Run the plan here, or on Spark's workers."""
        if dry_run:
            return self._handle.run(self.instant, dry_run=True)
        return self._handle.execute(self.instant, options, keywords, spark)

    def cancel(
        self,
        reason: str = CANCELLED_ON_REQUEST,
        *,
        force: bool = False,
        wait_seconds: float = 0,
        dry_run: bool = False,
    ) -> Cancellation:
        """Cancel the plan for good, even while it is running."""
        return self._handle.cancel(
            self.instant, reason, force=force, wait_seconds=wait_seconds, dry_run=dry_run
        )


class TableServiceHandle:
    """One table service of one table."""

    def __init__(
        self, kind: TableService, context_factory: ContextFactory, own: Sequence[Setting[object]]
    ) -> None:
        self._kind = kind
        self._context_factory = partial(context_factory, own=own)

    def __repr__(self) -> str:
        return f"<{self._kind.service}>"

    def schedule(
        self,
        cancellable: bool | None = None,
        *,
        max_bytes: int | None = None,
        max_file_groups: int | None = None,
        partitions: Sequence[str] | None = None,
        filter: Filter | None = None,
        honour_trigger: bool = False,
        dry_run: bool = False,
        options: Options = None,
        **keywords: object,
    ) -> "Plan | Preview | Refusal":
        """Publish a plan on the timeline, or return why there is nothing to do.

        `partitions` and `filter` limit the plan to some partitions. The call does not wait for the
        service's trigger, unless `honour_trigger` is set. A dry run returns a preview of the plan.
        """
        refuse_limit("schedule", keywords, "max_file_groups and max_bytes")
        context = self._context_factory(options, keywords, parameters=parameters_of(self.schedule))
        plan_request = PlanRequest(
            cancellable=None if cancellable is None else yes_or_no("cancellable", cancellable),
            max_bytes=at_least_one("max_bytes", max_bytes),
            max_file_groups=at_least_one("max_file_groups", max_file_groups),
            partitions=partition_paths(context, partitions),
            filter=filter,
            honour_trigger=honour_trigger,
        )
        if dry_run:
            drafted = draft(context, self._kind, plan_request)
            return (
                drafted
                if isinstance(drafted, Refusal)
                else self._preview(drafted, context, plan_request)
            )
        done = schedule(context, self._kind, plan_request)
        return done if isinstance(done, Refusal) else self._plan(done, context, plan_request)

    def run(
        self,
        instant: str | None = None,
        limit: int | None = None,
        *,
        deadline: float | None = None,
        dry_run: bool = False,
        spark: "SparkSession | None" = None,
        options: Options = None,
        **keywords: object,
    ) -> Result:
        """Run one plan, or the pending plans, oldest first.

        The call starts at most `limit` plans, and none after `deadline` seconds. A dry run lists
        these plans.
        """
        limits = RunLimits(
            plans=at_least_one("limit", limit), deadline=seconds("deadline", deadline)
        )
        context_factory = partial(self._context_factory, parameters=parameters_of(self.run))

        def context_of(plan: str) -> Context:
            return context_factory(options, keywords, spark=spark, group=plan)

        named = None if instant is None else instant_text(instant)
        if dry_run:
            return dry_run_execution(context_factory(options, keywords), self._kind, limits, named)
        if named is not None:
            return self.execute(named, options, keywords, spark)
        return run_pending(context_factory(options, keywords), self._kind, limits, context_of)

    def schedule_and_run(
        self,
        cancellable: bool | None = None,
        *,
        max_bytes: int | None = None,
        max_file_groups: int | None = None,
        partitions: Sequence[str] | None = None,
        filter: Filter | None = None,
        deadline: float | None = None,
        honour_trigger: bool = False,
        dry_run: bool = False,
        spark: "SparkSession | None" = None,
        options: Options = None,
        **keywords: object,
    ) -> "Result | Preview":
        """Schedule a plan and run it; other pending plans stay as they are.

        After `deadline` seconds the call does not start the plan, which stays pending.
        """
        refuse_limit("schedule_and_run", keywords, "max_file_groups and max_bytes")
        parameters = parameters_of(self.schedule_and_run)
        clock = self._context_factory(options, keywords, parameters=parameters).ports.clock
        limit, began = seconds("deadline", deadline), clock.elapsed_seconds()
        done = self.schedule(
            cancellable,
            max_bytes=max_bytes,
            max_file_groups=max_file_groups,
            partitions=partitions,
            filter=filter,
            honour_trigger=honour_trigger,
            dry_run=dry_run,
            options=options,
            **keywords,
        )
        match done:
            case Refusal():
                return Result(service=self._kind.service, refusal=done)
            case Preview():
                return done
            case Plan(instant=instant) if _is_over(limit, clock.elapsed_seconds() - began):
                return Result(service=self._kind.service, left=(instant,))
            case Plan(instant=instant):
                return self._execute_own(instant, options, keywords, spark)

    def _execute_own(
        self,
        instant: str,
        options: Options,
        keywords: Mapping[str, object],
        spark: "SparkSession | None",
    ) -> Result:
        """Execute the plan just published; others may have rolled it back since."""
        try:
            return self.execute(instant, options, keywords, spark)
        except InvalidRequest as error:
            if error.code != _UNKNOWN:
                raise
            raise Conflict(
                "plan_cancelled",
                what=f"{self._kind.service} {instant} was not started.",
                why="It was cancelled and rolled back before its turn.",
                now="Schedule another one.",
                instant=instant,
            ) from error

    def execute(
        self,
        instant: str,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> Result:
        """Run one plan."""
        context = self._context_factory(options, keywords, spark=spark, group=instant)
        return run_plan(context, self._kind, instant)

    def plan(self, instant: str) -> Plan:
        """The pending plan of an instant."""
        return retrying_view(
            partial(load_for_writing, self._context_factory()),
            partial(self._plan_at, instant_text(instant)),
        )

    def _plan_at(self, instant: str, snapshot: Snapshot) -> Plan:
        files = self._files(snapshot, instant)
        scope, shape = scope_of(snapshot, files), shape_of(snapshot, files)
        return Plan(
            instant=instant,
            service=self._kind.service,
            cancellable=scope.is_cancellable,
            groups=scope.groups,
            missing_partitions=scope.missing_partitions,
            operations=shape.operations,
            input_bytes=shape.input_bytes,
            _handle=self,
        )

    def workers_for(
        self, plan: Plan, spark: "SparkSession | None", options: Options = None
    ) -> "SparkSession | None":
        """The session if Spark's workers pay for a plan of this size; None means threads."""
        least = self._context_factory(options).settings[SPARK_BYTES_MIN]
        return spark if (plan.input_bytes or 0) >= least else None

    def pending(self) -> Listed[Plan]:
        """The plans that are pending or running, oldest first."""
        found = map(self._if_pending, pending_plans(self._context_factory(), self._kind))
        return Listed(plan for plan in found if plan is not None)

    def _if_pending(self, instant: str) -> Plan | None:
        """None for one that has just ended."""
        try:
            return self.plan(instant)
        except InvalidRequest as error:
            if error.code != _UNKNOWN:
                raise
            return None

    def cancel(
        self,
        instant: str,
        reason: str,
        *,
        force: bool = False,
        wait_seconds: float = 0,
        dry_run: bool = False,
    ) -> Cancellation:
        """Cancel a plan."""
        return cancel(
            self._context_factory(),
            instant,
            reason,
            force=yes_or_no("force", force),
            wait_seconds=seconds("wait_seconds", wait_seconds) or 0,
            dry_run=dry_run,
        )

    def explained(self, plan: Plan) -> Listed[Explained]:
        """What a plan takes, and the partitions that it leaves to the next plan."""
        try:
            return explain_plan(self._context_factory(), plan.instant)
        except InvalidRequest as error:
            if error.code != _UNKNOWN:
                raise
            return explain_groups(plan.groups, f"It was in the plan, which is {plan.state}.")

    def explain_next(
        self, partitions: Sequence[str] | None = None, options: Options = None
    ) -> Listed[Explained]:
        """What a plan scheduled now would take, what it would skip, and why."""
        context = self._context_factory(options)
        plan_request = PlanRequest(partitions=partition_paths(context, partitions))
        return explain_draft(context, self._kind.service, draft(context, self._kind, plan_request))

    def state_of(self, instant: str) -> InstantState:
        """The present state of a plan."""
        context = self._context_factory()
        snapshot = load_for_writing(context)
        files = snapshot.pending(instant)
        if files is None:
            is_gone = completed_rollback_of(snapshot.timeline.active, instant) is not None
            is_done = snapshot.timeline.completion_time(instant) is not None
            return _is_ended(is_gone=is_gone, is_done=is_done)
        ledgers = pending_ledgers(context, snapshot)
        now = replace(snapshot, ledgers=ledgers)
        return pending_state(context, now, pending_rollbacks(snapshot.timeline.active), files)

    def _preview(self, drafted: Draft, context: Context, plan_request: PlanRequest) -> Preview:
        return Preview(
            service=self._kind.service,
            cancellable=is_cancellable(
                context.settings, self._kind.service, plan_request.cancellable
            ),
            groups=drafted.groups,
            missing_partitions=drafted.missing_partitions,
            skipped=drafted.skipped,
            input_bytes=drafted.input_bytes,
            scope=drafted.scope,
            operations=self._shape(drafted).operations,
            preempts=dry_run_preemption(context, self._kind, plan_request, drafted),
        )

    def _plan(self, done: Scheduled, context: Context, plan_request: PlanRequest) -> Plan:
        return Plan(
            instant=done.instant,
            service=self._kind.service,
            cancellable=is_cancellable(
                context.settings, self._kind.service, plan_request.cancellable
            ),
            groups=done.draft.groups,
            missing_partitions=done.draft.missing_partitions,
            operations=self._shape(done.draft).operations,
            input_bytes=done.draft.input_bytes,
            skipped=done.draft.skipped,
            scope=done.draft.scope,
            preempted=done.preempted,
            _handle=self,
        )

    def _shape(self, drafted: Draft) -> PlanShape:
        return shape_in(self._kind.service.action, drafted.content, f"the {self._kind.service}")

    def _files(self, snapshot: Snapshot, instant: str) -> InstantFiles:
        files = snapshot.pending(instant)
        if files is None or files.started_as is not self._kind.service.action:
            raise InvalidRequest(
                _UNKNOWN,
                what=f"The timeline has no pending {self._kind.service} {instant}.",
                why="It may be complete or rolled back, or was never published.",
                now="List the pending plans.",
                instant=instant,
            )
        return files


def _is_over(deadline: float | None, spent_seconds: float) -> bool:
    return deadline is not None and spent_seconds >= deadline


def _is_ended(*, is_gone: bool, is_done: bool) -> InstantState:
    if is_gone:
        return InstantState.ROLLED_BACK
    return InstantState.COMPLETED if is_done else InstantState.UNKNOWN
