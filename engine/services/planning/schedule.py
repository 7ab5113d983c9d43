"""Scheduling: a plan is drafted without the lock, and published under it if it still holds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from lakewarden.engine.conflicts.conflicts import overlapping_plans
from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by, touched_by
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import Conflict, CorruptTable, LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.writing.writer import refuse_unheard
from lakewarden.engine.read.query.answer import files_vanished, naming_removals
from lakewarden.engine.services.planning.plan_request import Draft, Drafted, PlanRequest, Refusal
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish_in
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.start import preempt_plans, without_preemptible
from lakewarden.engine.transaction.state.context import (
    Context,
    Service,
    is_cancellable,
    load_for_writing,
    reload_under_lock,
)
from lakewarden.engine.transaction.window.window import (
    touched_between,
    window_metadata_of,
    with_window_metadata,
)


class TableService(Protocol):
    """Compaction, log compaction or clustering."""

    @property
    def service(self) -> Service: ...

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none; writes nothing."""
        ...

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        """Make the files that a plan asks for, ready to be committed; any engine's plan will do.

        Asks `attempt.assert_mine()` between files, and tells how far it is.
        """
        ...


# Drafts made while others may write. The one after them is made under the lock.
DRAFTS_MAX = 3


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A plan on the timeline, and the draft it was published from."""

    instant: str
    draft: Draft
    # Cancellable plans that have made room for it.
    preempted: tuple[str, ...] = ()


def schedule(
    context: Context,
    service: TableService,
    plan_request: PlanRequest,
    seen: Snapshot | None = None,
) -> Scheduled | Refusal:
    """Publish a plan, or say why there is none; the first draft is of the table as it was `seen`.

    Steps of `schedule`: draft, lock, reload, holds, preempt, publish, unlock, abort. Where the
    draft does not hold any more there is another one. A crash before `schedule.preempt` leaves
    nothing, before `schedule.publish` plans that were cancelled in vain, after it a plan that
    waits.
    """
    scheduled = _schedule(context, service, plan_request, seen)
    if isinstance(scheduled, Scheduled):
        remove_cancelled(context, scheduled.preempted)
    return scheduled


def remove_cancelled(context: Context, plans: Iterable[str]) -> None:
    """Remove plans that were cancelled to make room; the next clean removes what fails here."""
    for plan in plans:
        try:
            abort(context, plan)
        except LakewardenError as error:
            figures = {"instant": plan, "reason": str(error)}
            context.ports.events(Event("left_for_later", figures))


def _schedule(
    context: Context, service: TableService, plan_request: PlanRequest, seen: Snapshot | None
) -> Scheduled | Refusal:
    for _ in range(DRAFTS_MAX):
        before = seen or load_for_writing(context)
        before, seen = _seen_by_planner(context, service, before, plan_request), None
        drafted = _draft_of(context, service, before, plan_request)
        if drafted is None:
            continue
        if isinstance(drafted, Refusal):
            return drafted
        with context.lock.hold(while_wanted=True) as held:
            now = reload_under_lock(context)
            if still_holds(drafted, before, now):
                published = _publish(context, held, service.service, drafted, before, now)
                if published is not None:
                    return published
    with context.lock.hold(while_wanted=True) as held:
        now = _seen_by_planner(context, service, reload_under_lock(context), plan_request)
        drafted = service.draft(context, now, plan_request)
        if isinstance(drafted, Refusal):
            return drafted
        published = _publish(context, held, service.service, drafted, now, now)
        if published is None:
            raise _no_room(service.service)
        return published


def draft(context: Context, service: TableService, plan_request: PlanRequest) -> Drafted:
    """The dry run of scheduling."""
    for _ in range(DRAFTS_MAX):
        seen = _seen_by_planner(context, service, load_for_writing(context), plan_request)
        drafted = _draft_of(context, service, seen, plan_request)
        if drafted is not None:
            return drafted
    seen = _seen_by_planner(context, service, load_for_writing(context), plan_request)
    with naming_removals(seen):
        return service.draft(context, seen, plan_request)


def _draft_of(
    context: Context, service: TableService, before: Snapshot, plan_request: PlanRequest
) -> Drafted | None:
    """The plan for the table as it was; None where it has lost files or plans since."""
    try:
        return service.draft(context, before, plan_request)
    except (CorruptTable, Conflict) as error:
        if files_vanished(before, error) is None:
            raise
        return None


def dry_run_preemption(
    context: Context, service: TableService, plan_request: PlanRequest, drafted: Draft
) -> tuple[str, ...]:
    """The pending plans that would be cancelled to make room for a draft."""
    snapshot = _seen_by_planner(context, service, load_for_writing(context), plan_request)
    overlapping = overlapping_plans(drafted.groups, snapshot.timeline.active)
    return tuple(plan for plan in overlapping if plan in snapshot.preemptible)


def _seen_by_planner(
    context: Context, service: TableService, snapshot: Snapshot, plan_request: PlanRequest
) -> Snapshot:
    """Cancellable plans make room for one that is not, and for no other."""
    if is_cancellable(context.settings, service.service, plan_request.cancellable):
        return snapshot
    return without_preemptible(context, snapshot)


def still_holds(drafted: Draft, before: Snapshot, now: Snapshot) -> bool:
    """Whether nothing has happened to the file groups of a draft since it was made.

    A plan must name all logs completed before it: those it does not know would be in the slice that
    it replaces, and lost.
    """
    known, there = _writes(before), _writes(now)
    if any(one.is_completed and not _is_completed_in(there, key) for key, one in known.items()):
        # Something was rolled back, if only started to be, or archived: the draft may have lost its
        # ground.
        return False
    if known.keys() - there.keys():
        return False
    fresh = [instant for key, instant in there.items() if known.get(key) != instant]
    return not any(drafted.groups & _groups(now, instant) for instant in fresh)


def with_plan_metadata(service: Service, drafted: Draft, before: Snapshot, now: Snapshot) -> Draft:
    """A draft with its account; what was written since it was made comes back in the next plan."""
    missing = {*drafted.missing_partitions, *touched_between(before, now, service)}
    account = window_metadata_of(before, drafted.rules)
    content = with_window_metadata(service, drafted.content, account, missing)
    return replace(drafted, content=content, missing_partitions=tuple(sorted(missing)))


def _publish(
    context: Context,
    held: HeldLock,
    service: Service,
    drafted: Draft,
    before: Snapshot,
    now: Snapshot,
) -> Scheduled | None:
    """The plan on the timeline; None if another one, which was to make room for it, does not."""
    # What runs it would be refused, and the plan would stay in the way of what mends the table.
    refuse_unheard(before.metadata)
    room: tuple[str, ...] = ()
    if before.preemptible:
        room = preempt_plans(context, held, now, drafted.groups, f"a new {service}")
    if set(overlapping_plans(drafted.groups, now.timeline.active)) - set(room):
        return None
    drafted = with_plan_metadata(service, drafted, before, now)
    published = publish_in(context, held, now, service.action, drafted.content, claims=False)
    return Scheduled(published.instant, drafted, room)


def _no_room(service: Service) -> Conflict:
    return Conflict(
        "plan_conflict",
        what=f"No {service} was scheduled.",
        why="A plan for the same file groups has just completed or just become live.",
        now="Try again.",
    )


def _is_completed_in(there: dict[tuple[str, str], Instant], key: tuple[str, str]) -> bool:
    return key in there and there[key].is_completed


def _writes(snapshot: Snapshot) -> dict[tuple[str, str], Instant]:
    return {i.key: i for i in snapshot.timeline.active.instants if i.action.is_write}


def _groups(snapshot: Snapshot, instant: Instant) -> frozenset[FileGroupId]:
    active = snapshot.timeline.active
    if instant.is_completed:
        return touched_by(active, instant).keys
    return planned_by(active, instant).keys if instant.action in PLANNED else frozenset()
