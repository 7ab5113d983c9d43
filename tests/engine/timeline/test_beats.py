"""Beats: signs of life, written, read and judged."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.beats import (
    Beat,
    decode_beat,
    delete_beat,
    delete_standard_beat,
    is_live,
    read_beat,
    read_beats,
    read_standard_beat,
    sign_of,
    standard_path,
    write_beat,
)
from lakewarden.engine.timeline.state import BeatSign

T = "20260307222557123"
INTERVAL_MS = 60_000


def beat(attempt: int = 1, sequence: int = 1, at_ms: int = 1_000_000, instant: str = T) -> Beat:
    return Beat(
        instant=instant,
        attempt=attempt,
        owner="me",
        sequence=sequence,
        at_ms=at_ms,
        interval_ms=INTERVAL_MS,
        step="write",
        done=3,
        total=9,
        bytes=12,
    )


def test_a_beat_is_read_back() -> None:
    storage = fresh_memory_storage()
    write_beat(storage, beat())
    write_beat(storage, beat(sequence=2))
    assert read_beat(storage, T, 1) == beat(sequence=2)
    assert storage.stat(f".hoodie/.lakewarden/beats/{T}.1.json") is not None


def test_an_attempt_without_beats_has_none() -> None:
    assert read_beat(fresh_memory_storage(), T, 1) is None
    assert read_beats(fresh_memory_storage(), T) == ()


def test_beats_of_all_attempts_come_in_their_order() -> None:
    storage = fresh_memory_storage()
    for attempt in (10, 2):
        write_beat(storage, beat(attempt))
    write_beat(storage, beat(instant=T + "9"))
    storage.put(f".hoodie/.lakewarden/beats/{T}.x.json", b"?")
    assert read_beats(storage, T) == (beat(2), beat(10))


def test_java_sees_a_beat_as_the_standard_file() -> None:
    storage = fresh_memory_storage(clock=ManualClock(5_000))
    write_beat(storage, beat())
    assert storage.read(f".hoodie/.heartbeat/{T}") == b""
    standard = read_standard_beat(storage, T, INTERVAL_MS)
    assert standard is not None
    assert (standard.attempt, standard.at_ms) == (0, 5_000)


def test_the_end_of_one_attempt_leaves_the_standard_file_to_the_next() -> None:
    storage = fresh_memory_storage()
    write_beat(storage, beat(1))
    delete_beat(storage, T, 1)
    assert read_beat(storage, T, 1) is None
    assert storage.stat(standard_path(T)) is not None
    delete_standard_beat(storage, T)
    assert read_standard_beat(storage, T, INTERVAL_MS) is None


@pytest.mark.parametrize(
    ("age_ms", "live"),
    [
        (0, True),
        (2 * INTERVAL_MS, True),
        (2 * INTERVAL_MS + 1, False),
        (-2 * INTERVAL_MS, True),
        (-2 * INTERVAL_MS - 1, False),
    ],
)
def test_a_beat_is_live_for_its_tolerable_misses(age_ms: int, *, live: bool) -> None:
    assert is_live(beat(at_ms=10**9), 10**9 + age_ms) is live


def test_the_newest_attempt_gives_the_sign() -> None:
    old_and_live, new_and_dead = beat(1, sequence=9, at_ms=10**9), beat(2, at_ms=0)
    assert sign_of([], 10**9) is BeatSign.NONE
    assert sign_of([old_and_live], 10**9) is BeatSign.LIVE
    assert sign_of([old_and_live, new_and_dead], 10**9) is BeatSign.DEAD


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as raised:
        decode_beat(b'{"format": 2, "kind": "beat"}', "some/path")
    assert raised.value.path == "some/path"


@settings(deadline=None)
@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_beat_or_a_named_error(payload: bytes) -> None:
    for content in (payload, b'{"format": 1, "kind": "beat", "at_ms": ' + payload + b"}"):
        with pytest.raises((CorruptTable, InvalidRequest)):
            decode_beat(content, "p")
