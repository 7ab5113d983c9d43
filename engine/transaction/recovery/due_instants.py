"""What is due: pending instants without a live attempt that the policy ends."""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.engine.metadata.writing.builds import is_refresh
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles, epoch_ms
from lakewarden.engine.timeline.instants.state import HeartbeatSign, InstantState, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import Ledger, read_ledger
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import (
    is_recent,
    pending_state,
    standard_heartbeat,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.state.rollback_plans import PendingRollback, Rollbacks
from lakewarden.engine.transaction.state.settings import (
    ROLLBACK_DELAY_MINUTES,
    FailedWrites,
    failed_writes_policy,
)

_MINUTE_MS = 60_000
_DEAD = "Its heartbeat has expired."
_NEVER_STARTED = "No worker has started it in the time that plans may wait."


@dataclass(frozen=True, slots=True)
class DueInstant:
    """What has to be undone: a pending instant, a rollback without one, or mere remains."""

    instant: str
    files: InstantFiles | None = None
    rollback: PendingRollback | None = None
    is_leftover: bool = False
    reason: str = _DEAD


@dataclass(frozen=True, slots=True)
class FailedInstantFinder:
    """A look at a table by which to tell what is due."""

    context: Context
    snapshot: Snapshot
    rollbacks: Rollbacks
    # Whether plans are given up, as a clean does and a write does not.
    sees_plans: bool = False

    def all_due(self, instant: str | None = None) -> Iterator[DueInstant]:
        """Everything that is due, or what is of one instant."""
        for files in self.snapshot.timeline.active.files:
            if not files.instant.is_completed and instant in (None, files.instant.requested):
                due = self._due(files)
                if due is not None:
                    yield due
        for target, pending in self.rollbacks.pending.items():
            if instant in (None, target) and self.snapshot.pending(target) is None:
                ledger = read_ledger(self.context.storage, target)
                if self._may_take_over(ledger, pending):
                    yield DueInstant(target, rollback=pending)

    def _due(self, files: InstantFiles) -> DueInstant | None:
        requested = files.instant.requested
        if files.started_as is Action.CLEAN:
            is_cancelled = self.snapshot.ledger(requested).ends_in is LedgerEnd.CANCELLED
            is_started = files.inflight is not None
            return (
                DueInstant(requested, files, is_leftover=True)
                if is_cancelled and not is_started
                else None
            )
        if files.started_as is Action.INDEXING:
            is_cancelled = self.snapshot.ledger(requested).ends_in is LedgerEnd.CANCELLED
            is_due = is_cancelled or self._is_dead_refresh(files)
            return DueInstant(requested, files, is_leftover=True) if is_due else None
        if files.started_as not in INGESTION | TABLE_SERVICES:
            return None
        state = pending_state(self.context, self.snapshot, self.rollbacks, files)
        if state is InstantState.ROLLED_BACK or self._is_torn_plan(files, state):
            return DueInstant(requested, files, is_leftover=True)
        is_started = files.started_as in INGESTION or files.inflight is not None
        reason = _DEAD if is_started else _NEVER_STARTED
        return DueInstant(requested, files, reason=reason) if self._is_due(files, state) else None

    def _is_dead_refresh(self, files: InstantFiles) -> bool:
        """Whether an index was being built anew by a process that died: what it has is in use.

        Its maker claims it in the hold of the lock in which it publishes it.
        """
        if not is_refresh(self.snapshot.timeline.active, files):
            return False
        state = pending_state(self.context, self.snapshot, self.rollbacks, files)
        return state in (InstantState.INFLIGHT_ABANDONED, InstantState.REQUESTED)

    def _is_due(self, files: InstantFiles, state: InstantState) -> bool:
        ledger = self.snapshot.ledger(files.instant.requested)
        match state:
            case InstantState.CANCELLED_ROLLING_BACK | InstantState.CANCELLED_ROLLBACK_DUE:
                return True
            case InstantState.ROLLING_BACK_ELSEWHERE:
                return self._may_take_over(ledger, self.rollbacks.pending[ledger.instant])
            case InstantState.INFLIGHT_ABANDONED | InstantState.REQUESTED:
                if files.started_as in INGESTION:
                    return self._is_given_up(ledger, files)
                return self.sees_plans and self._is_plan_given_up(ledger, files)
            case _:
                return False

    def _is_torn_plan(self, files: InstantFiles, state: InstantState) -> bool:
        """Whether a plan was cut short by a crash long ago; it counts as not published."""
        if state is not InstantState.UNKNOWN or files.requested is None:
            return False
        return not is_recent(self.context, files.requested.entry.modified_ms)

    def _is_given_up(self, ledger: Ledger, files: InstantFiles) -> bool:
        """Whether the policy has a write undone that sends no heartbeat."""
        policy = failed_writes_policy(self.context.settings)
        if policy is FailedWrites.LAZY and ledger.last_claim is None:
            # Where others may be at work, one who never gave a sign has a while to give the first.
            never_lived = standard_heartbeat(self.context, ledger.instant) is HeartbeatSign.NONE
            newest_ms = max(file.entry.modified_ms for file in files)
            return not (never_lived and is_recent(self.context, newest_ms))
        return policy is not FailedWrites.NEVER

    def _is_plan_given_up(self, ledger: Ledger, files: InstantFiles) -> bool:
        """Whether a cancellable plan that sends no heartbeat has had its time.

        A plan that an attempt of ours has started and left is never executed again. For any other
        inflight plan there is no proof that Java is not running it, since Java may send no
        heartbeat for a plan. So it has the same time as a plan that no attempt has started.
        """
        policy = failed_writes_policy(self.context.settings)
        is_kept = policy is FailedWrites.NEVER or not scope_of(self.snapshot, files).is_cancellable
        if is_kept:
            return False
        if files.inflight is not None and ledger.last_claim is not None:
            return True
        return policy is FailedWrites.LAZY and self._is_overdue(files)

    def _is_overdue(self, files: InstantFiles) -> bool:
        """Whether a plan is older than it may become before anybody begins with it."""
        delay_ms = self.context.settings[ROLLBACK_DELAY_MINUTES] * _MINUTE_MS
        since_ms = epoch_ms(files.instant.requested, self.snapshot.layout.zone)
        if files.inflight is not None:
            since_ms = files.inflight.entry.modified_ms
            if is_recent(self.context, since_ms):
                return False
        return since_ms is not None and self.context.now_ms() - since_ms >= delay_ms

    def _may_take_over(self, ledger: Ledger, pending: PendingRollback) -> bool:
        """Whether a rollback is left: ours is no harm to do twice, and one by Java is Java's."""
        if ledger.ends_in is LedgerEnd.CANCELLED:
            return True
        is_alive = standard_heartbeat(self.context, pending.instant) is HeartbeatSign.LIVE
        return not (is_alive or is_recent(self.context, pending.published_ms))
