"""One service as users call it: `table.compaction.schedule()`, `plan.run()`, `plan.cancel()`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lakewarden.call_checks import (
    at_least_one,
    instant_text,
    parameters_of,
    partition_paths,
    refuse_limit,
    seconds,
    yes_or_no,
)
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.plans.cancel import cancel
from lakewarden.engine.plans.cancellation import Cancellation
from lakewarden.engine.plans.cancelling import scope_of
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import pending_state
from lakewarden.engine.plans.moment import look, pending_ledgers
from lakewarden.engine.plans.rollback_plans import completed_rollback_of, pending_rollbacks
from lakewarden.engine.plans.service import Service, is_cancellable
from lakewarden.engine.read.predicate import Filter
from lakewarden.engine.services.choice import Draft, LeftOut, Refusal
from lakewarden.engine.services.pending import (
    RunLimits,
    foresee_run,
    pending_plans,
    run_pending,
    run_plan,
)
from lakewarden.engine.services.result import Result
from lakewarden.engine.services.schedule import Scheduled, draft, foresee_room, schedule
from lakewarden.engine.services.settings import SPARK_BYTES_MIN
from lakewarden.engine.services.state.explained import (
    Explained,
    Verdict,
    explain_draft,
    explain_groups,
    explain_left_out,
    explain_plan,
)
from lakewarden.engine.services.state.shape import PlanShape, shape_in, shape_of
from lakewarden.engine.services.table_service import TableService
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot, retrying
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.state import InstantState
from lakewarden.engine.view.slices import SliceKey
from lakewarden.previews import Preview, extent_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Options: TypeAlias = Mapping[str, object] | None

_UNKNOWN = "unknown_plan"
CANCELLED_ON_REQUEST = "cancelled on request"


class Desk(Protocol):
    """Gives a context to work in, with what a call sets.

    Keywords mean the operation's own settings first. With a session Spark's workers carry out the
    tasks; its jobs are in a group of that name.
    """

    def __call__(
        self,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        *,
        own: Sequence[Setting[object]] = (),
        parameters: Collection[str] = (),
        spark: "SparkSession | None" = None,
        group: str = "",
    ) -> Context: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan on the timeline."""

    instant: str
    service: Service
    cancellable: bool
    groups: frozenset[SliceKey]
    missing_partitions: tuple[str, ...] = ()
    # What Hudi counts of it: operations of a compaction, groups of a clustering.
    operations: int = 0
    # As its planner reckoned; None where it does not say.
    input_bytes: int | None = None
    # What scheduling has left out and why, which partitions it has looked at and why these, and
    # which cancellable plans have made room for it; known to whoever has scheduled it.
    left_out: tuple[LeftOut, ...] = ()
    scope: str = ""
    pre_empted: tuple[str, ...] = ()
    _door: "ServiceDoor" = field(repr=False, compare=False)

    def __str__(self) -> str:
        extent = extent_of(self.groups, cancellable=self.cancellable)
        cancelled = f"; cancelled for it: {', '.join(self.pre_empted)}" if self.pre_empted else ""
        return f"{self.service} {self.instant}: {extent}{cancelled}"

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions of its file groups."""
        return tuple(sorted({group.partition for group in self.groups}))

    @property
    def state(self) -> str:
        """The present state of the plan."""
        return self._door.state_of(self.instant).value

    def explain(self) -> tuple[Explained, ...]:
        """What the plan takes and what it skips, with reasons; also after its end."""
        told = {one.partition for one in self.left_out}
        taken = [
            row
            for row in self._door.explained(self)
            if row.verdict is Verdict.CHOSEN or row.partition not in told
        ]
        return (*taken, *explain_left_out(self.left_out))

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
            return self._door.run(self.instant, dry_run=True)
        return self._door.carry_out(self.instant, options, keywords, spark)

    def cancel(
        self,
        reason: str = CANCELLED_ON_REQUEST,
        *,
        force: bool = False,
        wait_seconds: float = 0,
        dry_run: bool = False,
    ) -> Cancellation:
        """Cancel the plan for good, even while it is running."""
        return self._door.cancel(
            self.instant, reason, force=force, wait_seconds=wait_seconds, dry_run=dry_run
        )


class ServiceDoor:
    """One table service of one table."""

    def __init__(self, kind: TableService, desk: Desk, own: Sequence[Setting[object]]) -> None:
        self._kind = kind
        self._desk = partial(desk, own=own)

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
        context = self._desk(options, keywords, parameters=parameters_of(self.schedule))
        wish = Wish(
            cancellable=None if cancellable is None else yes_or_no("cancellable", cancellable),
            max_bytes=at_least_one("max_bytes", max_bytes),
            max_file_groups=at_least_one("max_file_groups", max_file_groups),
            partitions=partition_paths(context, partitions),
            filter=filter,
            honour_trigger=honour_trigger,
        )
        if dry_run:
            drafted = draft(context, self._kind, wish)
            return (
                drafted if isinstance(drafted, Refusal) else self._preview(drafted, context, wish)
            )
        done = schedule(context, self._kind, wish)
        return done if isinstance(done, Refusal) else self._plan(done, context, wish)

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
        desk = partial(self._desk, parameters=parameters_of(self.run))

        def context_of(plan: str) -> Context:
            return desk(options, keywords, spark=spark, group=plan)

        named = None if instant is None else instant_text(instant)
        if dry_run:
            return foresee_run(desk(options, keywords), self._kind, limits, named)
        if named is not None:
            return self.carry_out(named, options, keywords, spark)
        return run_pending(desk(options, keywords), self._kind, limits, context_of)

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
        clock = self._desk(options, keywords, parameters=parameters).ports.clock
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
                return self._carry_out_own(instant, options, keywords, spark)

    def _carry_out_own(
        self,
        instant: str,
        options: Options,
        keywords: Mapping[str, object],
        spark: "SparkSession | None",
    ) -> Result:
        """Carry out what was just published; others may have taken it back since."""
        try:
            return self.carry_out(instant, options, keywords, spark)
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

    def carry_out(
        self,
        instant: str,
        options: Options = None,
        keywords: Mapping[str, object] | None = None,
        spark: "SparkSession | None" = None,
    ) -> Result:
        """Run one plan."""
        context = self._desk(options, keywords, spark=spark, group=instant)
        return run_plan(context, self._kind, instant)

    def plan(self, instant: str) -> Plan:
        """The pending plan of an instant."""
        return retrying(partial(look, self._desk()), partial(self._plan_at, instant_text(instant)))

    def _plan_at(self, instant: str, moment: Snapshot) -> Plan:
        files = self._files(moment, instant)
        scope, shape = scope_of(moment, files), shape_of(moment, files)
        return Plan(
            instant=instant,
            service=self._kind.service,
            cancellable=scope.is_cancellable,
            groups=scope.groups,
            missing_partitions=scope.missing_partitions,
            operations=shape.operations,
            input_bytes=shape.input_bytes,
            _door=self,
        )

    def workers_for(
        self, plan: Plan, spark: "SparkSession | None", options: Options = None
    ) -> "SparkSession | None":
        """The session if Spark's workers pay for a plan of this size; None means threads."""
        least = self._desk(options).settings[SPARK_BYTES_MIN]
        return spark if (plan.input_bytes or 0) >= least else None

    def pending(self) -> tuple[Plan, ...]:
        """The plans that are pending or running, oldest first."""
        found = map(self._if_pending, pending_plans(self._desk(), self._kind))
        return tuple(plan for plan in found if plan is not None)

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
            self._desk(),
            instant,
            reason,
            force=yes_or_no("force", force),
            wait_seconds=seconds("wait_seconds", wait_seconds) or 0,
            dry_run=dry_run,
        )

    def explained(self, plan: Plan) -> tuple[Explained, ...]:
        """What a plan takes, and the partitions that it leaves to the next plan."""
        try:
            return explain_plan(self._desk(), plan.instant)
        except InvalidRequest as error:
            if error.code != _UNKNOWN:
                raise
            return explain_groups(plan.groups, f"It was in the plan, which is {plan.state}.")

    def explain_next(
        self, partitions: Sequence[str] | None = None, options: Options = None
    ) -> tuple[Explained, ...]:
        """What a plan scheduled now would take, what it would skip, and why."""
        context = self._desk(options)
        wish = Wish(partitions=partition_paths(context, partitions))
        return explain_draft(context, self._kind.service, draft(context, self._kind, wish))

    def state_of(self, instant: str) -> InstantState:
        """The present state of a plan."""
        context = self._desk()
        moment = look(context)
        files = moment.pending(instant)
        if files is None:
            is_gone = completed_rollback_of(moment.timeline.active, instant) is not None
            is_done = moment.timeline.completion_time(instant) is not None
            return _ended(is_gone=is_gone, is_done=is_done)
        ledgers = pending_ledgers(context, moment)
        now = replace(moment, ledgers=ledgers)
        return pending_state(context, now, pending_rollbacks(moment.timeline.active), files)

    def _preview(self, drafted: Draft, context: Context, wish: Wish) -> Preview:
        return Preview(
            service=self._kind.service,
            cancellable=is_cancellable(context.settings, self._kind.service, wish.cancellable),
            groups=drafted.groups,
            missing_partitions=drafted.missing_partitions,
            left_out=drafted.left_out,
            input_bytes=drafted.input_bytes,
            scope=drafted.scope,
            operations=self._shape(drafted).operations,
            pre_empts=foresee_room(context, self._kind, wish, drafted),
        )

    def _plan(self, done: Scheduled, context: Context, wish: Wish) -> Plan:
        return Plan(
            instant=done.instant,
            service=self._kind.service,
            cancellable=is_cancellable(context.settings, self._kind.service, wish.cancellable),
            groups=done.draft.groups,
            missing_partitions=done.draft.missing_partitions,
            operations=self._shape(done.draft).operations,
            input_bytes=done.draft.input_bytes,
            left_out=done.draft.left_out,
            scope=done.draft.scope,
            pre_empted=done.pre_empted,
            _door=self,
        )

    def _shape(self, drafted: Draft) -> PlanShape:
        return shape_in(self._kind.service.action, drafted.content, f"the {self._kind.service}")

    def _files(self, moment: Snapshot, instant: str) -> InstantFiles:
        files = moment.pending(instant)
        if files is None or files.begun_as is not self._kind.service.action:
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


def _ended(*, is_gone: bool, is_done: bool) -> InstantState:
    if is_gone:
        return InstantState.ROLLED_BACK
    return InstantState.COMPLETED if is_done else InstantState.UNKNOWN
