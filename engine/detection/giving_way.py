"""Giving way: the error of a write that stops early, and the wait before it is tried again.

A write that is tried again at once meets the same rival. So it waits until that one has ended, or
looks dead, and says for whom.
"""

from lakewarden.engine.conflicts.conflicts import AGAIN, ConflictKind
from lakewarden.engine.detection.rivals import Rival
from lakewarden.engine.detection.strategies import WAIT_SECONDS
from lakewarden.engine.kernel.errors import Conflict, LakewardenError
from lakewarden.engine.kernel.events import Event, Figures
from lakewarden.engine.timeline.instants.state import HeartbeatSign, LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import newest_heartbeat
from lakewarden.engine.transaction.state.live_attempt import LiveAttempt
from lakewarden.engine.transaction.state.loading import load_for_display

GAVE_WAY = "early_write_conflict"

# Another attempt starts from the table as it is then.
_MENDED = frozenset({"write_conflict", "files_vanished", "snapshot_outdated", GAVE_WAY})
_LOOKS_EVERY_SECONDS = 1.0
_SAYS_AFTER_SECONDS = 5.0
_NAMED_GROUPS = 3


def early_write_conflict(requested: str, rival: Rival, now_ms: int) -> Conflict:
    """The error of a write that gives way before it has made its files."""
    other = f"{rival.action} {rival.instant}"
    first = rival.groups[0] if rival.groups else None
    held = rival.held_by
    is_plan = rival.kind is ConflictKind.PLANNED
    is_live = rival.kind is ConflictKind.UNDER_WAY
    standing = "is under way" if is_live else rival.kind.value
    return Conflict(
        GAVE_WAY,
        what=f"The write {requested} gave way to the {other}{_places(rival)}.",
        why=f"The {other} {standing}{_holder(held, now_ms)}.",
        now="Nothing was changed. Run the plan or cancel it, then write again."
        if is_plan
        else AGAIN,
        instant=rival.instant,
        action=rival.action,
        partition=first.partition if first else "",
        file_id=first.file_id if first else "",
        file_groups=tuple(f"{key.partition}/{key.file_id}".lstrip("/") for key in rival.groups),
        conflicts=len(rival.groups),
        owner=held.owner if held else "",
        host=held.host if held else "",
        step=held.step if held else "",
        heartbeat_age_ms=_age_ms(held, now_ms),
        expires_ms=held.expires_ms if held else None,
    )


def begins_again(context: Context, error: Conflict, retries: int) -> bool:
    """Whether a write is to begin anew; it has waited for the one that it gave way to."""
    if retries == 0 or error.code not in _MENDED:
        return False
    if error.code == GAVE_WAY:
        wait_for_rival(context, error)
    figures: Figures = {"code": error.code, "left": retries - 1, "reason": str(error)}
    context.ports.events(Event("write_retried", figures))
    return True


def wait_for_rival(context: Context, error: Conflict) -> None:
    """Wait until the one that a write gave way to has ended, or its heartbeat has expired.

    As long as is set at most; a caller who cancels ends it. A rival that has completed, or is a
    plan on which no process works, is not waited for.
    """
    most, clock = context.settings[WAIT_SECONDS], context.ports.clock
    began = clock.elapsed_seconds()
    says_next = _SAYS_AFTER_SECONDS
    while (waited := clock.elapsed_seconds() - began) < most:
        context.ports.check_wanted()
        if not _is_under_way(context, str(error.parameters["instant"])):
            return
        if waited >= says_next:
            context.ports.events(_waiting(error, waited, most - waited))
            says_next = waited * 2
        clock.sleep(min(_LOOKS_EVERY_SECONDS, most - waited))


def _is_under_way(context: Context, instant: str) -> bool:
    """Whether an instant is pending, and alive; as long as that is unknown it counts as such."""
    try:
        if load_for_display(context).pending(instant) is None:
            return False
        ledger = read_ledger(context.storage, instant)
        if ledger.ends_in in (LedgerEnd.CANCELLED, LedgerEnd.COMMITTED):
            return False
        return newest_heartbeat(context, ledger) is HeartbeatSign.LIVE
    except LakewardenError:
        return True


def _waiting(error: Conflict, waited: float, left: float) -> Event:
    found = error.parameters
    by = f" by {found['owner']} on {found['host']}" if found["host"] else ""
    rival = f"{found['action']} {found['instant']}"
    return Event("rival_waited", {"rival": rival, "by": by, "waited": waited, "left": left})


def _places(rival: Rival) -> str:
    """Some of the file groups that both are about."""
    if not rival.groups:
        return ""
    named = [
        f"{key.file_id} of partition {key.partition!r}" for key in rival.groups[:_NAMED_GROUPS]
    ]
    left = len(rival.groups) - len(named)
    more = f" and {left} more" if left else ""
    word = "group" if len(rival.groups) == 1 else "groups"
    return f" at file {word} {', '.join(named)}{more}"


def _holder(held: LiveAttempt | None, now_ms: int) -> str:
    if held is None:
        return ""
    age_ms = _age_ms(held, now_ms)
    step = f", at step {held.step!r}" if held.step else ""
    age = "" if age_ms is None else f"; its last heartbeat is {age_ms / 1000:.1f} s old"
    by = f"{held.owner} on {held.host}" if held.host else held.owner
    return f", by {by}{step}{age}"


def _age_ms(held: LiveAttempt | None, now_ms: int) -> int | None:
    if held is None or held.beaten_at_ms is None:
        return None
    return max(now_ms - held.beaten_at_ms, 0)
