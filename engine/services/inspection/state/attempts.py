"""What instants leave on disk while they run, as values: attempts, ledgers, markers, the lock."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.timeline.heartbeats import (
    BEATS_FOLDER,
    STANDARD_FOLDER,
    Heartbeat,
    is_live,
    read_heartbeat,
    read_standard_heartbeat,
)
from lakewarden.engine.timeline.instants.state import HeartbeatSign
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
from lakewarden.engine.transaction.state.context import Context, load_for_display
from lakewarden.engine.transaction.state.live_attempt import newest_heartbeat
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER, read_announcements
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    expires_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.transaction.state.settings import HEARTBEAT_INTERVAL_MS, HEARTBEAT_MISSES

_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One try at a pending instant; only the newest one can be live."""

    instant: str
    service: str
    attempt: int
    owner: str
    host: str
    process: str
    engine_version: str
    started_at_ms: int
    age_seconds: float | None
    is_newest: bool
    is_live: bool
    step: str | None = None
    done: int = 0
    total: int = 0
    bytes: int = 0
    last_heartbeat_at_ms: int | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatView:
    """A heartbeat that is on storage, of whatever instant."""

    instant: str
    # 0 for the standard one, which is all that Java gives and understands.
    attempt: int
    owner: str
    sequence: int
    at_ms: int
    age_seconds: float | None
    interval_ms: int
    expires_at_ms: int
    is_live: bool
    step: str
    done: int
    total: int
    bytes: int


def attempts(context: Context) -> tuple[AttemptView, ...]:
    """The attempts at all pending instants, writes included; by instant and number."""
    return retrying_view(partial(looked, context), partial(_attempts, context))


def _attempts(context: Context, snapshot: Snapshot) -> tuple[AttemptView, ...]:
    pending = pending_instants(context, snapshot)
    return tuple(view for one in pending for view in _attempts_at(context, one))


def heartbeats(context: Context) -> tuple[HeartbeatView, ...]:
    """All heartbeats that are there; one that was cut short is skipped."""
    found = [*_own_heartbeats(context), *_standard_heartbeats(context)]
    found.sort(key=lambda heartbeat: (heartbeat.instant, heartbeat.attempt))
    return tuple(_heartbeat_view(context, heartbeat) for heartbeat in found)


def _attempts_at(context: Context, pending: Pending) -> Iterator[AttemptView]:
    newest = pending.ledger.last_claim
    for entry in pending.ledger.entries:
        if not isinstance(entry, Claim):
            continue
        is_newest = entry == newest
        heartbeat = pending.heartbeat if is_newest else None
        yield AttemptView(
            instant=entry.instant,
            service=service_name(pending.action),
            attempt=entry.attempt,
            owner=entry.owner,
            host=entry.host,
            process=entry.process,
            engine_version=entry.engine_version,
            started_at_ms=entry.started_at_ms,
            age_seconds=age_seconds(context, entry.started_at_ms),
            is_newest=is_newest,
            is_live=is_newest and newest_heartbeat(context, pending.ledger) is HeartbeatSign.LIVE,
            step=heartbeat.step or None if heartbeat else None,
            done=heartbeat.done if heartbeat else 0,
            total=heartbeat.total if heartbeat else 0,
            bytes=heartbeat.bytes if heartbeat else 0,
            last_heartbeat_at_ms=heartbeat.at_ms if heartbeat else None,
            expires_at_ms=expires_at_ms(context, heartbeat) if heartbeat else None,
        )


def _own_heartbeats(context: Context) -> Iterator[Heartbeat]:
    for entry in context.storage.list(BEATS_FOLDER).files:
        match = _NAME.fullmatch(entry.name)
        if match is None:
            continue
        try:
            heartbeat = read_heartbeat(context.storage, match[1], int(match[2]))
        except CorruptTable:
            # It was cut short by a crash, or is just being written.
            continue
        if heartbeat is not None:
            yield heartbeat


def _standard_heartbeats(context: Context) -> Iterator[Heartbeat]:
    interval_ms = context.settings[HEARTBEAT_INTERVAL_MS]
    for entry in context.storage.list(STANDARD_FOLDER).files:
        if entry.name.isdecimal():
            heartbeat = read_standard_heartbeat(context.storage, entry.name, interval_ms)
            if heartbeat is not None:
                yield heartbeat


def _heartbeat_view(context: Context, heartbeat: Heartbeat) -> HeartbeatView:
    return HeartbeatView(
        instant=heartbeat.instant,
        attempt=heartbeat.attempt,
        owner=heartbeat.owner,
        sequence=heartbeat.sequence,
        at_ms=heartbeat.at_ms,
        age_seconds=age_seconds(context, heartbeat.at_ms),
        interval_ms=heartbeat.interval_ms,
        expires_at_ms=expires_at_ms(context, heartbeat),
        is_live=is_live(heartbeat, context.now_ms(), context.settings[HEARTBEAT_MISSES]),
        step=heartbeat.step,
        done=heartbeat.done,
        total=heartbeat.total,
        bytes=heartbeat.bytes,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerView:
    """A data file that an instant has announced before it was written."""

    instant: str
    partition: str
    file_name: str
    # DIRECT, or TIMELINE_SERVER_BASED for a line in a list.
    type: str
    # What kind of file it was to be; None where the marker does not say.
    kind: str | None
    # Whether the instant is pending still, so that its rollback would go by this marker.
    is_needed: bool
    at_ms: int
    age_seconds: float | None


def markers(context: Context, instant: str | None = None) -> tuple[MarkerView, ...]:
    """The markers of an instant, or of all that have any; by instant, partition and file."""
    pending = {one.requested for one in load_for_display(context).timeline.active.pending()}
    return tuple(
        MarkerView(
            instant=one,
            partition=found.file.partition,
            file_name=found.file.name,
            type=found.type.value,
            kind=found.kind,
            is_needed=one in pending,
            at_ms=found.at_ms,
            age_seconds=age_seconds(context, found.at_ms),
        )
        for one in ([instant] if instant is not None else _instants(context))
        for found in read_announcements(context.storage, one)
    )


def _instants(context: Context) -> tuple[str, ...]:
    folders = context.storage.list(TEMP_FOLDER).folders
    return tuple(sorted(folder.rstrip("/").rpartition("/")[2] for folder in folders))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """The lock that writers of the table share by these settings, and who has it."""

    # Kind and place.
    lock: str
    # None while it is free.
    owner: str | None = None
    since_ms: int | None = None
    age_seconds: float | None = None
    expires_at_ms: int | None = None


def locks(context: Context) -> tuple[LockView, ...]:
    """The lock, whether it is held or not; looking takes nothing."""
    lock, holder = context.lock.name, context.lock.holder()
    if holder is None:
        return (LockView(lock=lock),)
    return (
        LockView(
            lock=lock,
            owner=holder.owner,
            since_ms=holder.since_ms,
            age_seconds=age_seconds(context, holder.since_ms),
            expires_at_ms=holder.expires_ms,
        ),
    )
