"""Pending instants as the storage shows them at one moment, with all that is known of each."""

from dataclasses import dataclass, replace

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import pending_state
from lakewarden.engine.plans.moment import observe, pending_ledgers
from lakewarden.engine.plans.rollback_plans import Rollbacks, pending_rollbacks
from lakewarden.engine.plans.service import Service
from lakewarden.engine.plans.settings import BEAT_INTERVAL_MS, BEAT_MISSES
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.beats import Beat, read_beat, read_standard_beat
from lakewarden.engine.timeline.instant import Action, epoch_ms
from lakewarden.engine.timeline.ledger import Ledger
from lakewarden.engine.timeline.state import InstantState


@dataclass(frozen=True, slots=True)
class Pending:
    """A pending instant, its state, its ledger, and the newest sign of life."""

    files: InstantFiles
    state: InstantState
    ledger: Ledger
    beat: Beat | None

    @property
    def requested(self) -> str:
        return self.files.instant.requested

    @property
    def action(self) -> Action:
        return self.files.begun_as


def looked(context: Context) -> Snapshot:
    """The table now, with the ledgers of what is pending; nothing is put in order by looking."""
    moment = observe(context)
    return replace(moment, ledgers=pending_ledgers(context, moment))


def pending_instants(context: Context, moment: Snapshot) -> tuple[Pending, ...]:
    """All that is pending, oldest first; a few small calls for each."""
    rollbacks = pending_rollbacks(moment.timeline.active)
    return tuple(
        pending_of(context, moment, rollbacks, files)
        for files in moment.timeline.active.files
        if files.completed is None
    )


def pending_of(
    context: Context, moment: Snapshot, rollbacks: Rollbacks, files: InstantFiles
) -> Pending:
    ledger = moment.ledger(files.instant.requested)
    state = pending_state(context, moment, rollbacks, files)
    return Pending(files, state, ledger, newest_beat(context, ledger))


def newest_beat(context: Context, ledger: Ledger) -> Beat | None:
    """The last sign of life of the newest attempt; of one by Java the standard one."""
    claim = ledger.last_claim
    if claim is None:
        return read_standard_beat(
            context.storage, ledger.instant, context.settings[BEAT_INTERVAL_MS]
        )
    try:
        return read_beat(context.storage, ledger.instant, claim.attempt)
    except CorruptTable:
        # It was cut short by a crash, or is just being written.
        return None


def expires_at_ms(context: Context, beat: Beat) -> int:
    """Until when a beat shows its attempt alive."""
    return beat.at_ms + beat.interval_ms * context.settings[BEAT_MISSES]


def began_at_ms(moment: Snapshot, requested: str) -> int | None:
    """When an instant was requested, as a moment."""
    return epoch_ms(requested, moment.layout.zone)


def age_seconds(context: Context, at_ms: int | None) -> float | None:
    """How long ago a moment was; never below zero, whatever the clocks."""
    return None if at_ms is None else max(context.now_ms() - at_ms, 0) / 1000


def service_name(action: Action) -> str:
    """What users call the service behind an action."""
    service = Service.of(action)
    return action.value if service is None else service.value
