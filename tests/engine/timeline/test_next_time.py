"""The next time: strictly increasing, whatever the clock does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import UTC, ManualClock, named_zone
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.timeline.instants.instant import time_text
from lakewarden.engine.timeline.next_time import TimeSource

NOW_MS = 1_700_000_000_000
NOW = "20231114221320000"


def source(newest: str | None, now_ms: int = NOW_MS, **options: int) -> TimeSource:
    return TimeSource(ManualClock(now_ms), UTC, newest, **options)


def test_a_clock_that_is_ahead_of_the_timeline_is_believed() -> None:
    assert source("20231114221319999").next() == NOW
    assert source(None).next() == NOW


def test_times_of_one_millisecond_follow_each_other() -> None:
    times = source(NOW)
    assert [times.next(), times.next()] == ["20231114221320001", "20231114221320002"]


def test_a_clock_that_went_back_is_survived() -> None:
    assert source(NOW, NOW_MS - 299_000).next() == "20231114221320001"


def test_a_clock_too_far_behind_is_refused_with_the_skew_named() -> None:
    with pytest.raises(Conflict, match=r"301\.000 s behind") as raised:
        source(NOW, NOW_MS - 301_000).next()
    assert (raised.value.code, raised.value.skew_seconds) == ("clock_skew", 301.0)


def test_the_skew_that_is_survived_can_be_set() -> None:
    assert source(NOW, NOW_MS - 301_000, skew_max_seconds=400).next() == "20231114221320001"


def test_a_newest_time_that_is_no_date_and_ahead_is_refused() -> None:
    with pytest.raises(Conflict):
        source("99999999999999999").next()


def test_the_first_instants_of_a_metadata_table_are_in_the_past() -> None:
    assert source("00000000000000003").next() == NOW


def test_a_time_of_seconds_counts_as_the_last_of_its_milliseconds() -> None:
    assert source("20231114221320", NOW_MS - 5000).next() == "20231114221321000"


def test_the_local_hour_that_happens_twice_does_not_stop_anybody() -> None:
    zone = named_zone("America/Chicago")
    before_ms = 1_699_167_599_999  # 01:59:59.999 summer time, one millisecond before 01:00 winter.
    newest = time_text(before_ms, zone)
    times = TimeSource(ManualClock(before_ms + 1), zone, newest)
    assert newest == "20231105015959999"
    assert times.next() == "20231105020000000"


@given(st.lists(st.integers(-299_000, 10_000), max_size=20))
def test_times_increase_whatever_the_clock_does(moves: list[int]) -> None:
    clock = ManualClock(NOW_MS)
    times = TimeSource(clock, UTC, None, skew_max_seconds=10**9)
    given_out = [times.next()]
    for move in moves:
        clock.advance(move)
        given_out.append(times.next())
    assert given_out == sorted(set(given_out))
