"""Rivals: which pending writes and plans are about the same file groups, and which one gives way.

The same announcements and the same order as in early conflict detection and at the commit, seen
from outside. Nothing is decided here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.conflicts.conflicts import KINDS, ConflictStrategy, endangering, strategy_of
from lakewarden.engine.conflicts.touched_groups import Precedence, Touched, announced_by, planned_by
from lakewarden.engine.detection.strategies import detection_rules
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.settings import select_index
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import JAVA, newest_heartbeat
from lakewarden.engine.transaction.state.markers import AnnouncedGroups, announced_groups
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    expires_at_ms,
    looked,
    pending_instants,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalView:
    """A pending write or plan, beside another one that is about some of its file groups."""

    instant: str
    action: str
    operation: str | None
    is_live: bool
    # None for a write.
    is_cancellable: bool | None
    owner: str
    host: str | None
    step: str | None
    last_heartbeat_at_ms: int | None
    heartbeat_age_seconds: float | None
    expires_at_ms: int | None
    # How many file groups it has announced, apart from partitions that are named as a whole.
    file_groups: int
    partitions: tuple[str, ...]
    rival: str | None = None
    common: tuple[FileGroupId, ...] = ()
    # None where the commit decides, since detection is off.
    gives_way: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One of two that are compared."""

    pending: Pending
    announced: AnnouncedGroups
    operation: str | None
    precedence: Precedence | None
    is_live: bool
    # None for a write.
    is_cancellable: bool | None = None

    @property
    def requested(self) -> str:
        return self.pending.requested

    @property
    def is_plan(self) -> bool:
        return self.is_cancellable is not None


def rivals(context: Context) -> tuple[RivalView, ...]:
    """All pending writes and plans, oldest first; one row for each rival of one, or one row."""
    return retrying_view(partial(looked, context), partial(_rivals, context))


def _rivals(context: Context, snapshot: Snapshot) -> tuple[RivalView, ...]:
    sides = [
        _side(context, snapshot, one)
        for one in pending_instants(context, snapshot)
        if one.action in INGESTION | KINDS.keys() and one.ledger.ends_in is not LedgerEnd.CANCELLED
    ]
    has_buckets = select_index(snapshot, context.settings).buckets is not None
    strategy = strategy_of(context.settings, has_bucket_index=has_buckets)
    detects = detection_rules(context.settings) is not None
    return tuple(
        view for side in sides for view in _rows_of(context, side, sides, strategy, detects=detects)
    )


def _side(context: Context, snapshot: Snapshot, pending: Pending) -> _Side:
    active, instant = snapshot.timeline.active, pending.files.instant
    is_live = newest_heartbeat(context, pending.ledger) is HeartbeatSign.LIVE
    if pending.action in KINDS:
        requested = pending.files.requested
        touched = planned_by(active, requested.instant if requested else instant)
        is_cancellable = scope_of(snapshot, pending.files).is_cancellable
        return _Side(pending, AnnouncedGroups(touched), None, None, is_live, is_cancellable)
    said = announced_by(active, instant)
    found = announced_groups(context.storage, snapshot, instant)
    return _Side(pending, found, said.operation or None, said.precedence, is_live)


def _rows_of(
    context: Context, side: _Side, sides: list[_Side], strategy: ConflictStrategy, *, detects: bool
) -> Iterator[RivalView]:
    found = False
    for other in sides:
        common = _common(side, other, strategy) if other is not side else ()
        if common:
            found = True
            decides = detects or side.is_plan or other.is_plan
            gives_way = _gives_way(side, other) if decides else None
            yield _row(context, side, other.requested, common, gives_way)
    if not found:
        yield _row(context, side)


def _common(one: _Side, other: _Side, strategy: ConflictStrategy) -> tuple[FileGroupId, ...]:
    """The file groups of both in which one of them would undo the other, or lose to it."""
    if one.is_plan and other.is_plan:
        return ()
    mine, theirs = one.announced.touched.keys, other.announced.touched.keys
    for plan, write in ((one, other), (other, one)):
        if plan.is_plan:
            touched = write.announced.with_those_among(plan.announced.touched.keys)
            return tuple(sorted(_endangered(plan, write, touched)))
    there = {strategy.identity(key) for key in theirs | other.announced.among(mine)}
    here = mine | one.announced.among(theirs)
    return tuple(sorted(key for key in here if strategy.identity(key) in there))


def _endangered(plan: _Side, write: _Side, touched: Touched) -> frozenset[FileGroupId]:
    kind = KINDS[plan.pending.action]
    threatened = endangering(plan.requested, kind, write.requested, touched)
    return plan.announced.touched.keys & threatened


def _gives_way(side: _Side, other: _Side) -> bool:
    """Whether this one gives way to the other: the dead are no rivals, plans never to plans."""
    if side.is_plan:
        return other.is_live and bool(side.is_cancellable)
    if other.is_plan:
        return not other.is_cancellable
    is_older = other.requested < side.requested
    if side.precedence is not Precedence.FIRST or other.precedence is None:
        return other.is_live and is_older
    # Who had announced before would have kept this one from announcing.
    return other.is_live and is_older and other.precedence is Precedence.INSTANT


def _row(
    context: Context,
    side: _Side,
    rival: str | None = None,
    common: tuple[FileGroupId, ...] = (),
    gives_way: bool | None = None,
) -> RivalView:
    claim, heartbeat = side.pending.ledger.last_claim, side.pending.heartbeat
    at_ms = heartbeat.at_ms if heartbeat else None
    named = {key.partition for key in side.announced.touched.keys} | side.announced.replaced
    return RivalView(
        instant=side.requested,
        action=side.pending.action.value,
        operation=side.operation,
        is_live=side.is_live,
        is_cancellable=side.is_cancellable,
        owner=claim.owner if claim else JAVA,
        host=claim.host if claim else None,
        step=(heartbeat.step or None) if heartbeat else None,
        last_heartbeat_at_ms=at_ms,
        heartbeat_age_seconds=age_seconds(context, at_ms),
        expires_at_ms=expires_at_ms(context, heartbeat) if heartbeat else None,
        file_groups=len(side.announced.touched.keys),
        partitions=tuple(sorted(named)),
        rival=rival,
        common=common,
        gives_way=gives_way,
    )
