"""Claims: the right to make an attempt at an instant; a later claim supersedes an earlier one.

Fencing: a committer makes sure that no other one commits on an older look at the table.

The lock keeps committers apart, unless one stands still for longer than its lock lasts. So before
it decides about conflicts, a committer puts an entry behind the claim of every other pending
instant. One that has decided already, and not yet committed, finds the number of its `committed`
entry taken, and begins its commit anew. Of two that know nothing of each other, each fences the
other: whichever appends `committed` first, the other one's number is gone, or it finds that entry.
"""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from lakewarden.engine.kernel.errors import Unavailable, Unsettled
from lakewarden.engine.run.processes import mark_from
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.entries import Claim, Entry, Fenced
from lakewarden.engine.timeline.ledger.ledger import (
    Appended,
    InDoubt,
    Ledger,
    LostTo,
    append,
    read_ledger,
)
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context
from lakewarden.engine.transaction.state.plan_scope import INGESTION

_IN_DOUBT = "ledger_unsettled"


def append_claim(context: Context, ledger: Ledger, action: Action, owner: str) -> Appended | LostTo:
    """Claim the next attempt behind the ledger as it was read."""
    return append_entry(context, ledger, new_claim(context, ledger, action, owner))


def new_claim(context: Context, ledger: Ledger, action: Action, owner: str) -> Claim:
    """A claim of the next attempt, to be appended."""
    mark = context.ports.processes.mine()
    return Claim(
        instant=ledger.instant,
        action=action,
        attempt=ledger.next_number,
        owner=owner,
        host=mark.host,
        process=mark.text,
        engine_version=engine_version(),
        started_at_ms=context.now_ms(),
    )


def append_entry(context: Context, ledger: Ledger, entry: Entry) -> Appended | LostTo:
    """Append an entry; one in doubt is read back, and `Unsettled` is raised if that shows nothing.

    An entry in doubt may still arrive, so a caller that gets `Unsettled` neither repeats nor cleans
    up.
    """
    try:
        answer = append(context.storage, ledger, entry)
    except Unavailable as error:
        # What was denied, or found no room, has surely had no effect; else it may have arrived.
        if error.code != "storage_unavailable":
            raise
        answer = InDoubt(str(error))
    if isinstance(answer, InDoubt):
        return _read_back(context, ledger, entry, answer.cause)
    return answer


def is_in_doubt(error: BaseException, instant: str) -> bool:
    """Whether an error says that an entry in the ledger of an instant may or may not be there."""
    return isinstance(error, Unsettled) and (
        error.code == _IN_DOUBT and error.parameters.get("instant") == instant
    )


def _read_back(context: Context, ledger: Ledger, entry: Entry, cause: str) -> Appended | LostTo:
    number = ledger.next_number
    try:
        now = read_ledger(context.storage, ledger.instant)
    except Unavailable as error:
        raise _in_doubt(ledger, entry, cause) from error
    if now.next_number <= number:
        raise _in_doubt(ledger, entry, cause)
    there = now.entries[number - 1]
    if there == entry:
        return Appended(Ledger(ledger.instant, (*ledger.entries, entry)))
    return LostTo(there)


def _in_doubt(ledger: Ledger, entry: Entry, cause: str) -> Unsettled:
    return Unsettled(
        _IN_DOUBT,
        what=(
            f"It is not known whether the ledger of {ledger.instant} has "
            f"{type(entry).__name__.lower()}."
        ),
        why=cause,
        now="Look at the instant again: the next operation on the table resolves it.",
        instant=ledger.instant,
    )


def has_surely_ended(context: Context, process: str, host: str = "") -> bool:
    """Whether a process is known by its mark to be gone; False where that is not known."""
    mark = mark_from(process, host)
    return mark is not None and context.ports.processes.is_gone(mark)


@cache
def engine_version() -> str:
    """The version of this engine, as entries of the ledger tell it."""
    try:
        return version("lakewarden")
    except PackageNotFoundError:
        return "unknown"


def fence_rivals(context: Context, snapshot: Snapshot, by: str) -> bool:
    """Step `commit.fence`: fence all pending instants but one; False if one has committed.

    The caller has the lock, and has read its own ledger before it reloaded. Instants of engines
    without ledgers cannot be fenced: against those only the lock helps.
    """
    rivals = (ledger for instant, ledger in snapshot.ledgers.items() if instant != by)
    return all(_fence(context, ledger, by) for ledger in rivals if _decides(ledger))


def fence_plans(context: Context, plans: Iterable[str], by: str) -> None:
    """Step `write.fence-plans`: have plans that are executed look again before they commit.

    A cancellable plan gives way to the live writes that it sees. One that looked just before this
    write announced its file groups would commit, and this write would be lost.
    """
    for plan in plans:
        ledger = read_ledger(context.storage, plan)
        if _decides(ledger):
            _fence(context, ledger, by)


def _decides(ledger: Ledger) -> bool:
    """Whether an instant has to look for conflicts before it commits."""
    claim = ledger.last_claim
    is_open = ledger.ends_in is LedgerEnd.CLAIM
    return is_open and claim is not None and claim.action in INGESTION | TABLE_SERVICES


def _fence(context: Context, ledger: Ledger, by: str) -> bool:
    """Whether a fence, or a cancellation, is behind the last claim; False behind a commit."""
    while ledger.ends_in is LedgerEnd.CLAIM:
        last = ledger.last_whole
        assert last is not None
        fence = Fenced(
            instant=ledger.instant,
            action=last.action,
            owner=context.ports.ids.fresh(),
            by=by,
            at_ms=context.now_ms(),
        )
        if isinstance(append_entry(context, ledger, fence), Appended):
            return True
        # Others fence as well, or the instant has been claimed, cancelled or committed.
        ledger = read_ledger(context.storage, ledger.instant)
    return ledger.ends_in is not LedgerEnd.COMMITTED
