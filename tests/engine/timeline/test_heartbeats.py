"""Heartbeats: heartbeats, written, read and judged."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.heartbeats import (
    Heartbeat,
    decode_heartbeat,
    delete_heartbeat,
    delete_standard_heartbeat,
    heartbeat_sign,
    is_live,
    read_heartbeat,
    read_heartbeats,
    read_standard_heartbeat,
    standard_path,
    write_heartbeat,
)
from lakewarden.engine.timeline.instants.state import HeartbeatSign

T = "20260307222557123"
INTERVAL_MS = 60_000


def heartbeat(
    attempt: int = 1, sequence: int = 1, at_ms: int = 1_000_000, instant: str = T
) -> Heartbeat:
    return Heartbeat(
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


def test_a_heartbeat_is_read_back() -> None:
    storage = fresh_memory_storage()
    write_heartbeat(storage, heartbeat())
    write_heartbeat(storage, heartbeat(sequence=2))
    assert read_heartbeat(storage, T, 1) == heartbeat(sequence=2)
    assert storage.stat(f".hoodie/.lakewarden/beats/{T}.1.json") is not None


def test_an_attempt_without_heartbeats_has_none() -> None:
    assert read_heartbeat(fresh_memory_storage(), T, 1) is None
    assert read_heartbeats(fresh_memory_storage(), T) == ()


def test_heartbeats_of_all_attempts_come_in_their_order() -> None:
    storage = fresh_memory_storage()
    for attempt in (10, 2):
        write_heartbeat(storage, heartbeat(attempt))
    write_heartbeat(storage, heartbeat(instant=T + "9"))
    storage.put(f".hoodie/.lakewarden/beats/{T}.x.json", b"?")
    assert read_heartbeats(storage, T) == (heartbeat(2), heartbeat(10))


def test_java_sees_a_heartbeat_as_the_standard_file() -> None:
    storage = fresh_memory_storage(clock=ManualClock(5_000))
    write_heartbeat(storage, heartbeat())
    assert storage.read(f".hoodie/.heartbeat/{T}") == b""
    standard = read_standard_heartbeat(storage, T, INTERVAL_MS)
    assert standard is not None
    assert (standard.attempt, standard.at_ms) == (0, 5_000)


def test_the_end_of_one_attempt_leaves_the_standard_file_to_the_next() -> None:
    storage = fresh_memory_storage()
    write_heartbeat(storage, heartbeat(1))
    delete_heartbeat(storage, T, 1)
    assert read_heartbeat(storage, T, 1) is None
    assert storage.stat(standard_path(T)) is not None
    delete_standard_heartbeat(storage, T)
    assert read_standard_heartbeat(storage, T, INTERVAL_MS) is None


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
def test_a_heartbeat_is_live_for_its_tolerable_misses(age_ms: int, *, live: bool) -> None:
    assert is_live(heartbeat(at_ms=10**9), 10**9 + age_ms) is live


def test_the_newest_attempt_gives_the_sign() -> None:
    old_and_live, new_and_dead = heartbeat(1, sequence=9, at_ms=10**9), heartbeat(2, at_ms=0)
    assert heartbeat_sign([], 10**9) is HeartbeatSign.NONE
    assert heartbeat_sign([old_and_live], 10**9) is HeartbeatSign.LIVE
    assert heartbeat_sign([old_and_live, new_and_dead], 10**9) is HeartbeatSign.DEAD


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as raised:
        decode_heartbeat(b'{"format": 2, "kind": "heartbeat"}', "some/path")
    assert raised.value.path == "some/path"


@settings(deadline=None)
@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_heartbeat_or_a_named_error(payload: bytes) -> None:
    for content in (payload, b'{"format": 1, "kind": "heartbeat", "at_ms": ' + payload + b"}"):
        with pytest.raises((CorruptTable, InvalidRequest)):
            decode_heartbeat(content, "p")
