"""Attempts and their heartbeats, as values for tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
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
from lakewarden.engine.timeline.ledger.entries import Claim
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.instant_facts import newest_heartbeat
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
