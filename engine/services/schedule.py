"""Scheduling: a plan is drafted without the lock, and published under it if it still holds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.locks.plan_conflicts import overlapping_plans
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.locks.touched import PLANNED, planned_by, touched_by
from lakewarden.engine.plans.abort import abort
from lakewarden.engine.plans.account import account_of, with_account
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.plans.pre_empt import overlooking, pre_empt_plans
from lakewarden.engine.plans.publish import publish_in
from lakewarden.engine.plans.service import Service, is_cancellable
from lakewarden.engine.plans.touched_partitions import touched_between
from lakewarden.engine.services.choice import Draft, Drafted, Refusal
from lakewarden.engine.services.table_service import TableService
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instant import Instant
from lakewarden.engine.view.slices import SliceKey

# Drafts made while others may write. The one after them is made under the lock.
DRAFTS_MAX = 3


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A plan on the timeline, and the draft it was published from."""

    instant: str
    draft: Draft
    # Cancellable plans that have made room for it.
    pre_empted: tuple[str, ...] = ()


def schedule(context: Context, service: TableService, wish: Wish) -> Scheduled | Refusal:
    """Publish a plan, or say why there is none.

    Steps of `schedule`: draft, lock, reload, holds, pre-empt, publish, unlock, abort. Where the
    draft does not hold any more there is another one. A crash before `schedule.pre-empt` leaves
    nothing, before `schedule.publish` plans that were cancelled in vain, after it a plan that
    waits.
    """
    scheduled = _scheduled(context, service, wish)
    if isinstance(scheduled, Scheduled):
        remove_cancelled(context, scheduled.pre_empted)
    return scheduled


def remove_cancelled(context: Context, plans: Iterable[str]) -> None:
    """Remove plans that were cancelled to make room; one that resists is left to whoever cleans."""
    for plan in plans:
        try:
            abort(context, plan)
        except LakewardenError as error:
            figures = {"instant": plan, "reason": str(error)}
            context.ports.events(Event("left_for_later", figures))


def _scheduled(context: Context, service: TableService, wish: Wish) -> Scheduled | Refusal:
    for _ in range(DRAFTS_MAX):
        before = _seen_by_planner(context, service, look(context), wish)
        drafted = service.draft(context, before, wish)
        if isinstance(drafted, Refusal):
            return drafted
        with context.lock.hold(while_wanted=True) as held:
            now = reload(context)
            if still_holds(drafted, before, now):
                published = _published(context, held, service.service, drafted, before, now)
                if published is not None:
                    return published
    with context.lock.hold(while_wanted=True) as held:
        now = _seen_by_planner(context, service, reload(context), wish)
        drafted = service.draft(context, now, wish)
        if isinstance(drafted, Refusal):
            return drafted
        published = _published(context, held, service.service, drafted, now, now)
        if published is None:
            raise _no_room(service.service)
        return published


def draft(context: Context, service: TableService, wish: Wish) -> Drafted:
    """The dry run of scheduling."""
    return service.draft(context, _seen_by_planner(context, service, look(context), wish), wish)


def foresee_room(
    context: Context, service: TableService, wish: Wish, drafted: Draft
) -> tuple[str, ...]:
    """The pending plans that would be cancelled to make room for a draft."""
    moment = _seen_by_planner(context, service, look(context), wish)
    overlapping = overlapping_plans(drafted.groups, moment.timeline.active)
    return tuple(plan for plan in overlapping if plan in moment.overlooked)


def _seen_by_planner(
    context: Context, service: TableService, moment: Snapshot, wish: Wish
) -> Snapshot:
    """Cancellable plans make room for one that is not, and for no other."""
    if is_cancellable(context.settings, service.service, wish.cancellable):
        return moment
    return overlooking(context, moment)


def still_holds(drafted: Draft, before: Snapshot, now: Snapshot) -> bool:
    """Whether nothing has happened to the file groups of a draft since it was made.

    A plan must name all logs completed before it: those it does not know would be in the slice that
    it replaces, and lost.
    """
    known, there = _writes(before), _writes(now)
    if any(one.is_completed and not _is_completed_in(there, key) for key, one in known.items()):
        # Something was rolled back, if only begun to be, or archived: the draft may have lost its
        # ground.
        return False
    if known.keys() - there.keys():
        return False
    fresh = [instant for key, instant in there.items() if known.get(key) != instant]
    return not any(drafted.groups & _groups(now, instant) for instant in fresh)


def accounted(service: Service, drafted: Draft, before: Snapshot, now: Snapshot) -> Draft:
    """A draft with its account; what was written since it was made comes back in the next plan."""
    missing = {*drafted.missing_partitions, *touched_between(before, now, service)}
    account = account_of(before, drafted.rules)
    content = with_account(service, drafted.content, account, missing)
    return replace(drafted, content=content, missing_partitions=tuple(sorted(missing)))


def _published(
    context: Context,
    held: HeldLock,
    service: Service,
    drafted: Draft,
    before: Snapshot,
    now: Snapshot,
) -> Scheduled | None:
    """The plan on the timeline; None if another one, which was to make room for it, does not."""
    room: tuple[str, ...] = ()
    if before.overlooked:
        room = pre_empt_plans(context, held, now, drafted.groups, f"a new {service}")
    if set(overlapping_plans(drafted.groups, now.timeline.active)) - set(room):
        return None
    drafted = accounted(service, drafted, before, now)
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


def _writes(moment: Snapshot) -> dict[tuple[str, str], Instant]:
    return {i.key: i for i in moment.timeline.active.instants if i.action.is_write}


def _groups(moment: Snapshot, instant: Instant) -> frozenset[SliceKey]:
    active = moment.timeline.active
    if instant.is_completed:
        return touched_by(active, instant).keys
    return planned_by(active, instant).keys if instant.action in PLANNED else frozenset()
