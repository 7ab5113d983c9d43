"""Publishing: how an instant comes into being, and how it goes inflight.

A crash before the requested file leaves nothing but a heartbeat for Java. After it there is a
plan that waits, or a write without a claim, which the failed-writes policy undoes.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.kernel.errors import Conflict, Unsettled
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Lost, Unknown, Won
from lakewarden.engine.storage.side_by_side import both
from lakewarden.engine.timeline.heartbeats import write_first_heartbeat
from lakewarden.engine.timeline.instants.instant import (
    Action,
    Instant,
    Layout,
    State,
    create_instant,
)
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger, read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.state.claims import append_entry, engine_version, new_claim
from lakewarden.engine.transaction.state.context import Context, reload_under_lock

# Under the lock the first time is free; without it rivals of the same millisecond are few.
TIMES_TRIED_MAX = 10


@dataclass(frozen=True, slots=True)
class Published:
    """A new instant; with an attempt when its maker works on it at once."""

    instant: str
    attempt: Attempt | None = None


def publish(
    context: Context,
    action: Action,
    content: bytes = b"",
    *,
    claims: bool,
) -> Published:
    """Put a new instant on the timeline, later than all that is there.

    Steps of `publish`: lock, reload, time, first-heartbeat, requested, claim, heartbeat, unlock,
    inflight. Who works on the instant at once gives the first heartbeat before the requested file,
    or Java would take the instant for dead; a plan that waits has neither heartbeat nor claim.
    """
    # An attempt that is interrupted before anybody has it in hand must not go on beating.
    with ExitStack() as on_the_way:
        with context.lock.hold(while_wanted=True) as held:
            snapshot = reload_under_lock(context)
            published = publish_in(context, held, snapshot, action, content, claims=claims)
            if published.attempt is not None:
                on_the_way.enter_context(published.attempt)
        on_the_way.pop_all()
    return published


def publish_in(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    action: Action,
    content: bytes = b"",
    *,
    claims: bool,
) -> Published:
    """Steps `publish.time` to `publish.heartbeat`, by a caller that has the lock and reloaded."""
    _refuse_while_restored(snapshot)
    if claims:
        # It takes a while once, which should not pass between publishing and claiming.
        engine_version()
    for _ in range(TIMES_TRIED_MAX):
        requested = Instant(snapshot.times.next(), action, State.REQUESTED)
        is_unsure = snapshot.times.is_ahead or action is Action.ROLLBACK
        if is_unsure and _was_cancelled(context, requested):
            continue
        if claims:
            first = context.ports.processes.mine().text
            sign = partial(write_first_heartbeat, context.storage, requested.requested, first)
            both(context.storage, held.assert_held, sign)
        else:
            held.assert_held()
        if _create(context, snapshot.layout, requested, content):
            attempt = _claim(context, snapshot.layout, requested) if claims else None
            if attempt is None:
                context.ports.clock.sleep(snapshot.layout.tick_seconds)
            return Published(requested.requested, attempt)
    raise Conflict(
        "no_free_time",
        what=f"Lakewarden found no free instant time for a new {action.value}.",
        why=f"Other writers had taken {TIMES_TRIED_MAX} times in a row.",
        now="Make sure that all writers share one lock, then try again.",
        action=action.value,
    )


def to_inflight(
    context: Context, attempt: Attempt, content: bytes = b"", *, is_just_published: bool = False
) -> None:
    """Say on the timeline that the work has started; a later attempt finds that said already.

    Steps `publish.inflight`, `start.inflight` and `take-over.inflight`. Who has published the
    instant just now looks at the ledger again only after a pause.
    """
    if is_just_published:
        attempt.assert_mine()
    else:
        attempt.check_claim()
    inflight = Instant(attempt.instant, attempt.action, State.INFLIGHT)
    create_inflight(context, attempt.layout, inflight, content)


def create_inflight(
    context: Context, layout: Layout, inflight: Instant, content: bytes = b""
) -> None:
    """Create an inflight file unless it is there; every writer of it writes the same."""
    answer = create_instant(context.storage, layout, inflight, content)
    if isinstance(answer, Unknown) and context.storage.stat(layout.path(inflight)) is None:
        raise _unsettled(inflight, answer.cause)


def _refuse_while_restored(snapshot: Snapshot) -> None:
    """Refuse to begin with anything on a table that is half restored."""
    for pending in snapshot.timeline.active.pending((Action.RESTORE,)):
        raise Conflict(
            "restore_pending",
            what=(
                f"No write or service may start while the restore {pending.requested} is pending."
            ),
            why="The restore is removing instants of the table.",
            now="Wait until it ends. If its process has died, call restore again to finish it.",
            instant=pending.requested,
        )


def _was_cancelled(context: Context, requested: Instant) -> bool:
    """Whether the time is that of a build or plan that was cancelled and has left the timeline."""
    return read_ledger(context.storage, requested.requested).ends_in is LedgerEnd.CANCELLED


def _create(context: Context, layout: Layout, requested: Instant, content: bytes) -> bool:
    """Whether the time was free; raises in doubt, for the file may be another writer's."""
    match create_instant(context.storage, layout, requested, content):
        case Won():
            return True
        case Lost():
            return False
        case Unknown(cause):
            raise _unsettled(requested, cause)


def _claim(context: Context, layout: Layout, requested: Instant) -> Attempt:
    """Steps `publish.claim` and `publish.heartbeat`.

    A heartbeat whose claim has failed stays: it may have the name of another attempt's.
    """
    empty = Ledger(requested.requested)
    claim = new_claim(context, empty, requested.action, context.ports.ids.fresh())
    attempt = Attempt(context, layout, claim, Ledger(requested.requested, (claim,)))

    def append() -> None:
        if not isinstance(append_entry(context, empty, claim), Appended):
            raise _lost_the_claim(requested)

    try:
        both(context.storage, append, partial(attempt.begin, has_first_sign=True))
    except BaseException:
        attempt.stop_heartbeats()
        raise
    return attempt


def _lost_the_claim(requested: Instant) -> Conflict:
    return Conflict(
        "superseded",
        what=f"Another process claimed {requested} as soon as it was published.",
        why="This happens only if writers do not share one lock.",
        now="Make sure that all writers share one lock, then try again.",
        instant=requested.requested,
    )


def _unsettled(instant: Instant, cause: str) -> Unsettled:
    return Unsettled(
        "publishing_unsettled",
        what=f"It is not known whether {instant} was published.",
        why=cause,
        now="Look at the timeline: if the instant is there, the next operation resolves it.",
        instant=instant.requested,
    )
