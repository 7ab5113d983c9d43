"""Attempts and their signs of life, as values for tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.evidence import newest_sign
from lakewarden.engine.plans.settings import BEAT_INTERVAL_MS, BEAT_MISSES
from lakewarden.engine.services.state.pending import (
    Pending,
    age_seconds,
    expires_at_ms,
    looked,
    pending_instants,
    service_name,
)
from lakewarden.engine.snapshot import Snapshot, retrying
from lakewarden.engine.timeline.beats import (
    BEATS_FOLDER,
    STANDARD_FOLDER,
    Beat,
    is_live,
    read_beat,
    read_standard_beat,
)
from lakewarden.engine.timeline.ledger_entries import Claim
from lakewarden.engine.timeline.state import BeatSign

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
    last_beat_at_ms: int | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatView:
    """A sign of life that is on storage, of whatever instant."""

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
    return retrying(partial(looked, context), partial(_attempts, context))


def _attempts(context: Context, moment: Snapshot) -> tuple[AttemptView, ...]:
    pending = pending_instants(context, moment)
    return tuple(view for one in pending for view in _attempts_at(context, one))


def beats(context: Context) -> tuple[BeatView, ...]:
    """All signs of life that are there; one that was cut short is left out."""
    found = [*_own_beats(context), *_standard_beats(context)]
    found.sort(key=lambda beat: (beat.instant, beat.attempt))
    return tuple(_beat_view(context, beat) for beat in found)


def _attempts_at(context: Context, pending: Pending) -> Iterator[AttemptView]:
    newest = pending.ledger.last_claim
    for entry in pending.ledger.entries:
        if not isinstance(entry, Claim):
            continue
        is_newest = entry == newest
        beat = pending.beat if is_newest else None
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
            is_live=is_newest and newest_sign(context, pending.ledger) is BeatSign.LIVE,
            step=beat.step or None if beat else None,
            done=beat.done if beat else 0,
            total=beat.total if beat else 0,
            bytes=beat.bytes if beat else 0,
            last_beat_at_ms=beat.at_ms if beat else None,
            expires_at_ms=expires_at_ms(context, beat) if beat else None,
        )


def _own_beats(context: Context) -> Iterator[Beat]:
    for entry in context.storage.list(BEATS_FOLDER).files:
        match = _NAME.fullmatch(entry.name)
        if match is None:
            continue
        try:
            beat = read_beat(context.storage, match[1], int(match[2]))
        except CorruptTable:
            # It was cut short by a crash, or is just being written.
            continue
        if beat is not None:
            yield beat


def _standard_beats(context: Context) -> Iterator[Beat]:
    interval_ms = context.settings[BEAT_INTERVAL_MS]
    for entry in context.storage.list(STANDARD_FOLDER).files:
        if entry.name.isdecimal():
            beat = read_standard_beat(context.storage, entry.name, interval_ms)
            if beat is not None:
                yield beat


def _beat_view(context: Context, beat: Beat) -> BeatView:
    return BeatView(
        instant=beat.instant,
        attempt=beat.attempt,
        owner=beat.owner,
        sequence=beat.sequence,
        at_ms=beat.at_ms,
        age_seconds=age_seconds(context, beat.at_ms),
        interval_ms=beat.interval_ms,
        expires_at_ms=expires_at_ms(context, beat),
        is_live=is_live(beat, context.now_ms(), context.settings[BEAT_MISSES]),
        step=beat.step,
        done=beat.done,
        total=beat.total,
        bytes=beat.bytes,
    )
