"""At rest: an index comes and goes while no write or started plan is pending on the table.

An attempt that started before has gathered no statistics and keys for a new index, and its commit
would make the index untrue. Plans that no attempt has started do no harm: they are executed with
the indexes of that time.
"""

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    pending_instants,
    service_name,
)

_PLANS = frozenset(
    {
        Action.COMPACTION,
        Action.LOG_COMPACTION,
        Action.CLUSTERING,
        Action.CLEAN,
        Action.INDEXING,
    }
)


def refuse_busy(context: Context, snapshot: Snapshot, *, but: frozenset[str] = frozenset()) -> None:
    """Refuse while something is under way, but for some instants that do not count."""
    for pending in pending_instants(context, snapshot):
        if pending.requested in but or _is_waiting(pending):
            continue
        if pending.action is Action.SAVEPOINT:
            # It keeps files, and has nothing to say to an index.
            continue
        name = service_name(pending.action)
        raise Conflict(
            "table_busy",
            what=f"The {name} {pending.requested} has not ended ({pending.state.value}).",
            why="It started before the index change and would leave the new index incomplete.",
            now=(
                "Wait until it ends, then try again. CALL show_plans shows its worker, CALL "
                "show_blockers how to end it."
            ),
            instant=pending.requested,
        )


def _is_waiting(pending: Pending) -> bool:
    """Whether it is a plan that will be started with anew; what Java left may still be alive."""
    if pending.action not in _PLANS:
        return False
    if pending.state is InstantState.REQUESTED:
        return True
    is_ours = pending.ledger.last_claim is not None
    return is_ours and pending.state is InstantState.INFLIGHT_ABANDONED
