"""The state of an instant, from the files alone.

One pure function over what a look at the storage shows. It is total: every combination has an
answer, and the first rule that fits gives it.
"""

from dataclasses import dataclass
from enum import Enum, auto


class LedgerEnd(Enum):
    """The kind of the last entry in an instant's ledger."""

    NONE = auto()
    CLAIM = auto()
    COMMITTED = auto()
    CANCELLED = auto()


class RollbackOf(Enum):
    """Whether a rollback targets the instant, and how far it has come."""

    NONE = auto()
    PENDING = auto()
    COMPLETED = auto()


class PlanFile(Enum):
    """The requested file; one that is torn, or empty where a plan belongs, is not published."""

    ABSENT = auto()
    TORN = auto()
    WHOLE = auto()


class HeartbeatSign(Enum):
    """The newest heartbeat of an attempt at the instant."""

    NONE = auto()
    DEAD = auto()
    LIVE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantFacts:
    """What the storage shows of an instant."""

    completed: bool
    rollback: RollbackOf
    ledger: LedgerEnd
    inflight: bool
    plan: PlanFile
    heartbeat: HeartbeatSign


class InstantState(Enum):
    """What an instant is, in the words shown to users."""

    COMPLETED = "completed"
    ROLLED_BACK = "rolled back"
    COMMITTED = "committed, to be rolled forward"
    CANCELLED_ROLLING_BACK = "cancelled, rollback under way"
    CANCELLED_ALIVE = "cancelled, attempt still alive"
    CANCELLED_ROLLBACK_DUE = "cancelled, rollback due"
    ROLLING_BACK_ELSEWHERE = "being rolled back by an engine without a ledger"
    INFLIGHT_HELD = "inflight, held"
    INFLIGHT_ABANDONED = "inflight, abandoned"
    REQUESTED_HELD = "requested, held"
    REQUESTED = "requested"
    UNKNOWN = "unknown: never published"


def state_of(seen: InstantFacts) -> InstantState:
    """The state that the evidence amounts to."""
    if seen.completed:
        return InstantState.COMPLETED
    if seen.rollback is RollbackOf.COMPLETED:
        return InstantState.ROLLED_BACK
    if seen.ledger is LedgerEnd.COMMITTED:
        # A writer that rolls back without a ledger may remove its files already.
        is_undone = seen.rollback is RollbackOf.PENDING
        return InstantState.ROLLING_BACK_ELSEWHERE if is_undone else InstantState.COMMITTED
    if seen.ledger is LedgerEnd.CANCELLED:
        return _state_of_cancelled(seen)
    if seen.rollback is RollbackOf.PENDING:
        return InstantState.ROLLING_BACK_ELSEWHERE
    is_live = seen.heartbeat is HeartbeatSign.LIVE
    if seen.inflight:
        return InstantState.INFLIGHT_HELD if is_live else InstantState.INFLIGHT_ABANDONED
    if seen.plan is PlanFile.WHOLE:
        return InstantState.REQUESTED_HELD if is_live else InstantState.REQUESTED
    return InstantState.UNKNOWN


def _state_of_cancelled(seen: InstantFacts) -> InstantState:
    if seen.rollback is RollbackOf.PENDING:
        return InstantState.CANCELLED_ROLLING_BACK
    if seen.heartbeat is HeartbeatSign.LIVE:
        return InstantState.CANCELLED_ALIVE
    return InstantState.CANCELLED_ROLLBACK_DUE
