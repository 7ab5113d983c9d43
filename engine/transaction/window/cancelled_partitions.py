"""The return of cancelled partitions: what a plan that was cancelled had taken goes to the next
plan of its service.

Its ledger says so, and may be removed as soon as a later plan has heard of it and has completed.
"""

from collections.abc import Iterable, Iterator, Mapping

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import epoch_ms
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import Ledger, instants_with_ledger, read_ledger
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.service import Service
from lakewarden.engine.transaction.state.settings import SKEW_MAX_SECONDS, STORAGE_THREADS

_GONE = "missing_file"


def cancelled_partitions(
    context: Context, snapshot: Snapshot, service: Service, since: str
) -> tuple[str, ...]:
    """The partitions of the plans that were cancelled since a time, and what these skipped.

    One listing, and a look at the ledgers of the instants that have not completed.
    """
    since_ms = heard_until(context, snapshot, since)
    active = snapshot.timeline.active
    completed = {instant.requested for instant in active.instants if instant.is_completed}
    ended = [one for one in instants_with_ledger(context.storage) if one not in completed]
    found: set[str] = set()
    for entry in _cancelled(_ledgers(context, ended)):
        if Service.of(entry.action) is service and entry.at_ms >= since_ms:
            found.update(entry.partitions, entry.missing_partitions)
    return tuple(sorted(found))


def is_returned(ledger: Ledger, heard_ms: Mapping[Service, int | None]) -> bool:
    """Whether no window needs the ledger of an instant that was cancelled.

    `heard_ms` tells for each service until when its last completed plan has heard of what was
    cancelled. Without such a plan the next one looks at all partitions and needs no ledger.
    """
    for entry in _cancelled((ledger,)):
        service = Service.of(entry.action)
        heard = None if service is None else heard_ms.get(service)
        return heard is None or entry.at_ms < heard
    return True


def heard_until(context: Context, snapshot: Snapshot, planned: str) -> int:
    """The time up to which a plan has surely heard of what was cancelled, whatever the clocks."""
    planned_ms = epoch_ms(planned, snapshot.layout.zone) or 0
    return planned_ms - 1000 * context.settings[SKEW_MAX_SECONDS]


def _cancelled(ledgers: Iterable[Ledger | None]) -> Iterator[Cancelled]:
    for ledger in ledgers:
        entry = None if ledger is None else ledger.last_whole
        if isinstance(entry, Cancelled):
            yield entry


def _ledgers(context: Context, instants: list[str]) -> Iterator[Ledger | None]:
    def read(instant: str) -> Ledger | None:
        try:
            return read_ledger(context.storage, instant)
        except CorruptTable as error:
            if error.code != _GONE:
                raise
            # It was removed this very moment, so its partitions are returned already.
            return None

    threads = min(context.settings[STORAGE_THREADS], max(len(instants), 1))
    return LocalExecutor(threads).map(read, instants)
