"""Describing a pending instant that blocks others: its owner, its age and what to do."""

from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Instant, epoch_ms
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.live_attempt import live_attempt
from lakewarden.engine.transaction.state.plan_scope import INGESTION

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
