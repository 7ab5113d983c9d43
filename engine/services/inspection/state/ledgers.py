"""The ledger of an instant, as values for tables."""

from dataclasses import dataclass, replace

from lakewarden.engine.timeline.ledger.entries import (
    Cancelled,
    Claim,
    Committed,
    Entry,
    Fenced,
    Torn,
    Withdrawn,
)
from lakewarden.engine.timeline.ledger.ledger import instants_with_ledger, read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.pending_instants import age_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """An entry of a ledger: who did what to the instant, and when."""

    instant: str
    number: int
    entry: str
    attempt: int | None = None
    owner: str | None = None
    host: str | None = None
    process: str | None = None
    at_ms: int | None = None
    age_seconds: float | None = None
    completion_time: str | None = None
    by: str | None = None
    reason: str | None = None
    # Partitions that a cancelled plan leaves to the next one.
    handed_back: tuple[str, ...] = ()


def ledger_of(context: Context, instant: str) -> tuple[LedgerRow, ...]:
    """The entries of an instant's ledger, oldest first; none for one that has no ledger."""
    entries = read_ledger(context.storage, instant).entries
    return tuple(
        _row(context, instant, number, entry) for number, entry in enumerate(entries, start=1)
    )


def ledgers(context: Context) -> tuple[LedgerRow, ...]:
    """The entries of all ledgers that there are, the oldest instant first."""
    instants = sorted(instants_with_ledger(context.storage))
    return tuple(row for instant in instants for row in ledger_of(context, instant))


def _row(context: Context, instant: str, number: int, entry: Entry | Torn) -> LedgerRow:
    row = LedgerRow(instant=instant, number=number, entry=type(entry).__name__.lower())
    if isinstance(entry, Torn):
        return replace(row, reason="A crash truncated it; it says nothing.")
    at_ms = entry.started_at_ms if isinstance(entry, Claim) else entry.at_ms
    row = replace(row, owner=entry.owner, at_ms=at_ms, age_seconds=age_seconds(context, at_ms))
    match entry:
        case Claim():
            return replace(row, attempt=entry.attempt, host=entry.host, process=entry.process)
        case Committed():
            return replace(row, attempt=entry.attempt, completion_time=entry.completion_time)
        case Fenced():
            return replace(row, by=entry.by, reason="Another instant was about to commit.")
        case Cancelled() | Withdrawn():
            handed_back = _handed_back(entry)
            return replace(row, by=entry.by, reason=entry.reason, handed_back=handed_back)


def _handed_back(entry: Cancelled | Withdrawn) -> tuple[str, ...]:
    if isinstance(entry, Withdrawn):
        return ()
    return tuple(sorted({*entry.partitions, *entry.missing_partitions}))
