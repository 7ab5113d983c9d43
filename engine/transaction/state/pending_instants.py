"""Pending instants as the storage shows them at one moment, with all that is known of each.

Describing a pending instant that blocks others: its owner, its age and what to do.
"""

from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.heartbeats import Heartbeat, read_heartbeat, read_standard_heartbeat
from lakewarden.engine.timeline.instants.instant import Action, Instant, InstantFiles, epoch_ms
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.state.context import (
    Context,
    Service,
    load_for_display,
    pending_ledgers,
)
from lakewarden.engine.transaction.state.live_attempt import live_attempt, pending_state
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.rollback_plans import Rollbacks, pending_rollbacks
from lakewarden.engine.transaction.state.settings import HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS


def describe_pending(context: Context, snapshot: Snapshot, instant: Instant) -> str:
    """Since when an instant has been pending, who works on it, and what can be done about it."""
    files = snapshot.timeline.active.files_of(instant)
    started_as = instant.action if files is None else files.started_as
    live = live_attempt(context, read_ledger(context.storage, instant.requested))
    age = age_of(context, snapshot, instant.requested)
    who = "no worker is running it" if live is None else f"{live} is running it"
    if live is not None:
        remedy = "Wait until it ends."
    elif started_as in INGESTION:
        remedy = "Roll it back."
    else:
        remedy = "Run it, or cancel it."
    return f"It started {age} ago, and {who}. {remedy}"


def age_of(context: Context, snapshot: Snapshot, requested: str) -> str:
    """How long ago a time of the timeline was, in words."""
    since_ms = epoch_ms(requested, snapshot.layout.zone)
    if since_ms is None:
        return "an unknown time"
    age_ms = max(context.now_ms() - since_ms, 0)
    for unit_ms, name in ((_DAY_MS, "days"), (_HOUR_MS, "hours"), (_MINUTE_MS, "minutes")):
        if age_ms >= 2 * unit_ms:
            return f"{age_ms // unit_ms} {name}"
    return f"{age_ms // 1000} seconds"


@dataclass(frozen=True, slots=True)
class Pending:
    """A pending instant, its state, its ledger, and the newest heartbeat."""

    files: InstantFiles
    state: InstantState
    ledger: Ledger
    heartbeat: Heartbeat | None

    @property
    def requested(self) -> str:
        return self.files.instant.requested

    @property
    def action(self) -> Action:
        return self.files.started_as


def looked(context: Context) -> Snapshot:
    """The table now, with the ledgers of what is pending; nothing is put in order by looking."""
    snapshot = load_for_display(context)
    return replace(snapshot, ledgers=pending_ledgers(context, snapshot))


def pending_instants(context: Context, snapshot: Snapshot) -> tuple[Pending, ...]:
    """All that is pending, oldest first; a few small calls for each."""
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    return tuple(
        pending_of(context, snapshot, rollbacks, files)
        for files in snapshot.timeline.active.files
        if files.completed is None
    )


def pending_of(
    context: Context, snapshot: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> Pending:
    ledger = snapshot.ledger(files.instant.requested)
    state = pending_state(context, snapshot, rollbacks, files)
    return Pending(files, state, ledger, newest_heartbeat(context, ledger))


def newest_heartbeat(context: Context, ledger: Ledger) -> Heartbeat | None:
    """The last heartbeat of the newest attempt; of one by Java the standard one."""
    claim = ledger.last_claim
    if claim is None:
        return read_standard_heartbeat(
            context.storage, ledger.instant, context.settings[HEARTBEAT_INTERVAL_MS]
        )
    try:
        return read_heartbeat(context.storage, ledger.instant, claim.attempt)
    except CorruptTable:
        # It was cut short by a crash, or is just being written.
        return None


def expires_at_ms(context: Context, heartbeat: Heartbeat) -> int:
    """Until when a heartbeat shows its attempt alive."""
    return heartbeat.at_ms + heartbeat.interval_ms * context.settings[HEARTBEAT_MISSES]


def began_at_ms(snapshot: Snapshot, requested: str) -> int | None:
    """When an instant was requested, as a moment."""
    return epoch_ms(requested, snapshot.layout.zone)


def age_seconds(context: Context, at_ms: int | None) -> float | None:
    """How long ago a moment was; never below zero, whatever the clocks."""
    return None if at_ms is None else max(context.now_ms() - at_ms, 0) / 1000


def service_name(action: Action) -> str:
    """What users call the service behind an action."""
    service = Service.of(action)
    return action.value if service is None else service.value
