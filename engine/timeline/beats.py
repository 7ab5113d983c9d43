"""Beats: signs of life of an attempt. A hint for others, never a licence for the attempt itself.

Beside our own beats, which say how far the work is, the standard file is touched, so that Java
Hudi sees the instant alive; of instants begun by Java there is only that file. Java looks at its
time alone, so that our first sign, which comes before any claim, says there whose it is.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.formats.payloads.binding import value_of
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.documents import PRIVATE_FOLDER, format_document, parse_document
from lakewarden.engine.timeline.state import BeatSign

BEATS_FOLDER = f"{PRIVATE_FOLDER}/beats"
STANDARD_FOLDER = ".hoodie/.heartbeat"
TOLERABLE_MISSES = 2

_KIND = "beat"
_NAME = re.compile(r"([0-9]+)\.([0-9]+)\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
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


def is_live(beat: Beat, now_ms: int, tolerable_misses: int = TOLERABLE_MISSES) -> bool:
    """Whether an attempt counts as alive: its beat is neither too old nor far in the future.

    A clock that once ran ahead must not keep a dead attempt alive for ever.
    """
    return abs(now_ms - beat.at_ms) <= beat.interval_ms * tolerable_misses


def sign_of(
    beats: Iterable[Beat], now_ms: int, tolerable_misses: int = TOLERABLE_MISSES
) -> BeatSign:
    """What the newest of some beats says."""
    newest = max(beats, key=lambda beat: (beat.attempt, beat.sequence), default=None)
    if newest is None:
        return BeatSign.NONE
    return BeatSign.LIVE if is_live(newest, now_ms, tolerable_misses) else BeatSign.DEAD


def beat_path(instant: str, attempt: int) -> str:
    return f"{BEATS_FOLDER}/{instant}.{attempt}.json"


def write_beat(storage: Storage, beat: Beat) -> None:
    """Give a sign of life, ours and the standard one."""
    write_own_beat(storage, beat)
    storage.put(standard_path(beat.instant), b"")


def write_own_beat(storage: Storage, beat: Beat) -> None:
    """The same for an attempt at an instant that has just been given its first sign."""
    storage.put(beat_path(beat.instant, beat.attempt), format_document(_KIND, beat))


def write_first_sign(storage: Storage, instant: str, process: str) -> None:
    """Give the sign of life that comes before the instant, with the mark of its process."""
    storage.put(standard_path(instant), process.encode())


def read_first_sign(storage: Storage, instant: str) -> str:
    """The mark in the first sign of an instant; nothing in later ones, and in those of Java."""
    content = storage.read_if_present(standard_path(instant)) or b""
    return content.decode(errors="replace")


def read_beat(storage: Storage, instant: str, attempt: int) -> Beat | None:
    """The last beat of an attempt; None when it never gave one, or has ended."""
    path = beat_path(instant, attempt)
    payload = storage.read_if_present(path)
    return None if payload is None else decode_beat(payload, path)


def read_beats(storage: Storage, instant: str) -> tuple[Beat, ...]:
    """The last beats of all attempts at an instant, by attempt."""
    matches = (_NAME.fullmatch(entry.name) for entry in storage.list(BEATS_FOLDER).files)
    attempts = sorted(int(match[2]) for match in matches if match and match[1] == instant)
    beats = (read_beat(storage, instant, attempt) for attempt in attempts)
    return tuple(beat for beat in beats if beat is not None)


def standard_path(instant: str) -> str:
    return f"{STANDARD_FOLDER}/{instant}"


def read_standard_beat(storage: Storage, instant: str, interval_ms: int) -> Beat | None:
    """The sign of life that Java gives, as a beat of attempt 0; None when there is none."""
    entry = storage.stat(standard_path(instant))
    if entry is None:
        return None
    return Beat(
        instant=instant,
        attempt=0,
        owner="",
        sequence=0,
        at_ms=entry.modified_ms,
        interval_ms=interval_ms,
    )


def delete_beat(storage: Storage, instant: str, attempt: int) -> None:
    """End an attempt's own signs of life.

    The standard file belongs to all attempts at the instant and stays: a newer one may live on it.
    """
    storage.delete(beat_path(instant, attempt))


def delete_standard_beat(storage: Storage, instant: str) -> None:
    """End the sign of life that Java sees, once the instant has ended."""
    storage.delete(standard_path(instant))


def decode_beat(payload: bytes, path: str) -> Beat:
    """The beat in a file; what a newer engine wrote is refused by name."""
    return value_of(Beat, parse_document(payload, path, kinds=frozenset({_KIND})).record, path, str)
