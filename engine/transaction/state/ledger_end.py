"""The ledger's end: the entries after which nothing commits and files may be deleted."""

from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Cancelled, Withdrawn
from lakewarden.engine.timeline.ledger.ledger import Appended, Ledger, read_ledger
from lakewarden.engine.transaction.state.claims import append_entry
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.plan_scope import PlanScope, plan_scope

# Rivals for the next number; each of them has claimed the instant since it was looked at.
RIVALS_MAX = 100


def append_cancelled(
    context: Context,
    ledger: Ledger,
    action: Action,
    scope: PlanScope,
    *,
    reason: str,
    by: str | None = None,
) -> Ledger:
    """The ledger with an end: `cancelled` by this call or an earlier one, or `committed`.

    Lost to a claim it is tried again behind it; an end is never followed by another.
    """
    entry = Cancelled(
        instant=ledger.instant,
        action=action,
        owner=context.ports.ids.fresh(),
        by=by or this_process(context),
        reason=reason,
        at_ms=context.now_ms(),
        partitions=scope.partitions,
        missing_partitions=scope.missing_partitions,
    )
    for _ in range(RIVALS_MAX):
        if ledger.ends_in in (LedgerEnd.COMMITTED, LedgerEnd.CANCELLED):
            return ledger
        answer = append_entry(context, ledger, entry)
        if isinstance(answer, Appended):
            return answer.ledger
        ledger = read_ledger(context.storage, ledger.instant)
    raise _no_turn(ledger, action)


def append_withdrawn(
    context: Context, ledger: Ledger, action: Action, *, reason: str, by: str | None = None
) -> Ledger:
    """The ledger of a completed instant with an end that lets its files be removed."""
    entry = Withdrawn(
        instant=ledger.instant,
        action=action if ledger.last_whole is None else ledger.last_whole.action,
        owner=context.ports.ids.fresh(),
        by=by or this_process(context),
        reason=reason,
        at_ms=context.now_ms(),
    )
    for _ in range(RIVALS_MAX):
        if ledger.ends_in is LedgerEnd.CANCELLED:
            return ledger
        answer = append_entry(context, ledger, entry)
        if isinstance(answer, Appended):
            return answer.ledger
        ledger = read_ledger(context.storage, ledger.instant)
    raise _no_turn(ledger, action)


def scope_of(snapshot: Snapshot, files: InstantFiles) -> PlanScope:
    """The scope of a pending instant; empty where its plan is torn or absent."""
    if files.requested is None:
        return PlanScope()
    content = snapshot.timeline.active.read(files.requested.instant)
    try:
        return plan_scope(files.started_as, content, files.requested.entry.path)
    except CorruptTable as error:
        if error.code == TORN_PLAN:
            return PlanScope()
        raise


def this_process(context: Context) -> str:
    """Who acts, when no other name is given."""
    mark = context.ports.processes.mine()
    return f"process {mark.pid} on {mark.host}"


def _no_turn(ledger: Ledger, action: Action) -> Conflict:
    return Conflict(
        "no_turn",
        what=f"Lakewarden could not end {action.value} {ledger.instant}.",
        why=f"Other processes appended to its ledger first, {RIVALS_MAX} times in a row.",
        now="Try again.",
        instant=ledger.instant,
    )
