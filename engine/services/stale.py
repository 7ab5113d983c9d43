"""Stale instants: what was started long ago and sends no heartbeat any more."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.reset import reset
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context
from lakewarden.engine.transaction.state.live_attempt import live_attempt
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    began_at_ms,
    looked,
    pending_instants,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class InflightView:
    """A pending instant, its age, and the process that runs it."""

    instant: str
    action: Action
    state: str
    age_seconds: float | None
    held_by: str | None = None
    # Whether it has got beyond its plan; a write has from the start.
    is_started: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StaleEnd(Shown):
    """What became of a stale instant; without an answer it was a dry run."""

    instant: str
    action: Action
    is_done: bool | None = None
    message: str = ""


def inflight_instants(context: Context, min_age_minutes: int = 0) -> tuple[InflightView, ...]:
    """The pending instants of at least that age, oldest first."""
    return retrying_view(partial(looked, context), partial(_inflight, context, min_age_minutes))


def _inflight(
    context: Context, min_age_minutes: int, snapshot: Snapshot
) -> tuple[InflightView, ...]:
    views = []
    for one in pending_instants(context, snapshot):
        age = age_seconds(context, began_at_ms(snapshot, one.requested))
        if age is None or age >= min_age_minutes * 60:
            views.append(_inflight_view(context, one, age))
    return tuple(views)


def end_stale(
    context: Context, min_age_minutes: int, *, with_writes: bool = False, dry_run: bool = False
) -> tuple[StaleEnd, ...]:
    """Roll back what is stale: plans that were started, and writes if that is asked for.

    An instant with heartbeats stays, however old. A failure is reported among the others; if all
    fail, the first failure is raised.
    """
    actions = TABLE_SERVICES | INGESTION if with_writes else TABLE_SERVICES
    chosen = [
        one
        for one in inflight_instants(context, min_age_minutes)
        if one.action in actions and one.is_started and one.held_by is None
    ]
    if dry_run:
        return tuple(
            StaleEnd(instant=one.instant, action=one.action, message="It would be rolled back.")
            for one in chosen
        )
    failures: list[LakewardenError] = []
    ends = tuple(_end(context, chosen, failures))
    if failures and len(failures) == len(ends):
        raise failures[0]
    return ends


def _end(
    context: Context, chosen: list[InflightView], failures: list[LakewardenError]
) -> Iterator[StaleEnd]:
    for one in chosen:
        context.ports.check_wanted()
        is_done, message = True, ""
        try:
            message = _roll_back(context, one)
        except LakewardenError as error:
            failures.append(error)
            is_done, message = False, str(error)
        yield StaleEnd(instant=one.instant, action=one.action, is_done=is_done, message=message)


def _roll_back(context: Context, one: InflightView) -> str:
    if one.action in TABLE_SERVICES:
        outcome = reset(context, one.instant).outcome.value
        return f"The plan is {outcome.replace('_', ' ')}."
    done = rollback(context, one.instant)
    return f"{done.rollback} rolled it back; {done.files_deleted} files are deleted."


def _inflight_view(context: Context, pending: Pending, age: float | None) -> InflightView:
    live = live_attempt(context, pending.ledger)
    files = pending.files
    return InflightView(
        instant=pending.requested,
        action=pending.action,
        state=files.instant.state.name,
        age_seconds=age,
        held_by=None if live is None else str(live),
        is_started=pending.action in INGESTION or files.inflight is not None,
    )
