"""The ledger of an instant, as values for tables."""

from dataclasses import dataclass

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
    kind = type(entry).__name__.lower()
    match entry:
        case Torn():
            reason = "A crash truncated it; it says nothing."
            return LedgerRow(instant=instant, number=number, entry=kind, reason=reason)
        case Claim(attempt=attempt, owner=owner, started_at_ms=at_ms):
            return LedgerRow(
                instant=instant,
                number=number,
                entry=kind,
                attempt=attempt,
                owner=owner,
                host=entry.host,
                process=entry.process,
                at_ms=at_ms,
                age_seconds=age_seconds(context, at_ms),
            )
        case Committed(attempt=attempt, owner=owner, at_ms=at_ms):
            return LedgerRow(
                instant=instant,
                number=number,
                entry=kind,
                attempt=attempt,
                owner=owner,
                at_ms=at_ms,
                age_seconds=age_seconds(context, at_ms),
                completion_time=entry.completion_time,
            )
        case Fenced():
            return LedgerRow(
                instant=instant,
                number=number,
                entry=kind,
                owner=entry.owner,
                at_ms=entry.at_ms,
                age_seconds=age_seconds(context, entry.at_ms),
                by=entry.by,
                reason="Another instant was about to commit.",
            )
        case Cancelled() | Withdrawn():
            return LedgerRow(
                instant=instant,
                number=number,
                entry=kind,
                owner=entry.owner,
                at_ms=entry.at_ms,
                age_seconds=age_seconds(context, entry.at_ms),
                by=entry.by,
                reason=entry.reason,
                handed_back=_handed_back(entry),
            )


def _handed_back(entry: Cancelled | Withdrawn) -> tuple[str, ...]:
    if isinstance(entry, Withdrawn):
        return ()
    return tuple(sorted({*entry.partitions, *entry.missing_partitions}))
