"""Heartbeats: heartbeats of an attempt. A hint for others, never a licence for the attempt itself.

Beside our own heartbeats, which say how far the work is, the standard file is touched, so that Java
Hudi sees the instant alive; of instants started by Java there is only that file. Java looks at its
time alone, so that our first sign, which comes before any claim, says there whose it is.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.state import HeartbeatSign
from lakewarden.engine.timeline.ledger.entries import (
    PRIVATE_FOLDER,
    format_document,
    parse_document,
)

BEATS_FOLDER = f"{PRIVATE_FOLDER}/beats"
STANDARD_FOLDER = ".hoodie/.heartbeat"
TOLERABLE_MISSES = 2

_KIND = "beat"
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What an attempt says of itself, and when it will say so again."""

    instant: str
    attempt: int
    owner: str
    sequence: int
    at_ms: int
    interval_ms: int
    step: str = ""
    done: int = 0
    total: int = 0
    bytes: int = 0


def is_live(heartbeat: Heartbeat, now_ms: int, tolerable_misses: int = TOLERABLE_MISSES) -> bool:
    """Whether an attempt counts as alive: its heartbeat is neither too old nor far in the future.

    A clock that once ran ahead must not keep a dead attempt alive for ever.
    """
    return abs(now_ms - heartbeat.at_ms) <= heartbeat.interval_ms * tolerable_misses


def heartbeat_sign(
    heartbeats: Iterable[Heartbeat], now_ms: int, tolerable_misses: int = TOLERABLE_MISSES
) -> HeartbeatSign:
    """What the newest of some heartbeats says."""
    newest = max(
        heartbeats, key=lambda heartbeat: (heartbeat.attempt, heartbeat.sequence), default=None
    )
    if newest is None:
        return HeartbeatSign.NONE
    return HeartbeatSign.LIVE if is_live(newest, now_ms, tolerable_misses) else HeartbeatSign.DEAD


def heartbeat_path(instant: str, attempt: int) -> str:
    return f"{BEATS_FOLDER}/{instant}.{attempt}.json"


def write_heartbeat(storage: Storage, heartbeat: Heartbeat) -> None:
    """Give a heartbeat, ours and the standard one."""
    write_own_heartbeat(storage, heartbeat)
    touch_standard_heartbeat(storage, heartbeat.instant)


def touch_standard_heartbeat(storage: Storage, instant: str) -> None:
    """Give the heartbeat that Java sees."""
    storage.put(standard_path(instant), b"")


def write_own_heartbeat(storage: Storage, heartbeat: Heartbeat) -> None:
    """The same for an attempt at an instant that has just been given its first sign."""
    storage.put(
        heartbeat_path(heartbeat.instant, heartbeat.attempt), format_document(_KIND, heartbeat)
    )


def write_first_heartbeat(storage: Storage, instant: str, process: str) -> None:
    """Give the heartbeat that comes before the instant, with the mark of its process."""
    storage.put(standard_path(instant), process.encode())


def read_first_heartbeat(storage: Storage, instant: str) -> str:
    """The mark in the first sign of an instant; nothing in later ones, and in those of Java."""
    content = storage.read_if_present(standard_path(instant)) or b""
    return content.decode(errors="replace")


def read_heartbeat(storage: Storage, instant: str, attempt: int) -> Heartbeat | None:
    """The last heartbeat of an attempt; None when it never gave one, or has ended."""
    path = heartbeat_path(instant, attempt)
    payload = storage.read_if_present(path)
    return None if payload is None else decode_heartbeat(payload, path)


def read_heartbeats(storage: Storage, instant: str) -> tuple[Heartbeat, ...]:
    """The last heartbeats of all attempts at an instant, by attempt."""
    matches = (_NAME.fullmatch(entry.name) for entry in storage.list(BEATS_FOLDER).files)
    attempts = sorted(int(match[2]) for match in matches if match and match[1] == instant)
    heartbeats = (read_heartbeat(storage, instant, attempt) for attempt in attempts)
    return tuple(heartbeat for heartbeat in heartbeats if heartbeat is not None)


def standard_path(instant: str) -> str:
    return f"{STANDARD_FOLDER}/{instant}"


def read_standard_heartbeat(storage: Storage, instant: str, interval_ms: int) -> Heartbeat | None:
    """The heartbeat that Java gives, as a heartbeat of attempt 0; None when there is none."""
    entry = storage.stat(standard_path(instant))
    if entry is None:
        return None
    return Heartbeat(
        instant=instant,
        attempt=0,
        owner="",
        sequence=0,
        at_ms=entry.modified_ms,
        interval_ms=interval_ms,
    )


def delete_heartbeat(storage: Storage, instant: str, attempt: int) -> None:
    """End an attempt's own heartbeats.

    The standard file belongs to all attempts at the instant and stays: a newer one may live on it.
    """
    storage.delete(heartbeat_path(instant, attempt))


def delete_standard_heartbeat(storage: Storage, instant: str) -> None:
    """End the heartbeat that Java sees, once the instant has ended."""
    storage.delete(standard_path(instant))


def decode_heartbeat(payload: bytes, path: str) -> Heartbeat:
    """The heartbeat in a file; what a newer engine wrote is refused by name."""
    return value_of(
        Heartbeat, parse_document(payload, path, kinds=frozenset({_KIND})).record, path, str
    )
