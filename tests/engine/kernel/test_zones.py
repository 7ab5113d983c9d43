"""Time zones: wall-clock times to moments and back, with Java's rules where a clock changes."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import LOCAL, UTC, Zone, named_zone
from lakewarden.engine.kernel.errors import InvalidRequest

CHICAGO = named_zone("America/Chicago")


def utc_ms(*parts: int) -> int:
    return UTC.epoch_ms(datetime(*parts))


def test_utc_is_the_time_line_itself() -> None:
    assert utc_ms(1970, 1, 1, 0, 0, 1, 5000) == 1005


def test_a_zone_shifts_the_wall_clock() -> None:
    assert CHICAGO.epoch_ms(datetime(2026, 3, 7, 16, 25, 57)) == utc_ms(2026, 3, 7, 22, 25, 57)


def test_a_time_that_happens_twice_is_the_first() -> None:
    assert CHICAGO.epoch_ms(datetime(2026, 11, 1, 1, 30)) == utc_ms(2026, 11, 1, 6, 30)


def test_a_time_that_is_skipped_moves_forward() -> None:
    skipped = CHICAGO.epoch_ms(datetime(2026, 3, 8, 2, 30))
    assert CHICAGO.wall(skipped) == datetime(2026, 3, 8, 3, 30)


@pytest.mark.parametrize("zone", [UTC, CHICAGO, LOCAL], ids=lambda zone: zone.name)
@settings(deadline=None)
@given(moment_ms=st.integers(0, 4_000_000_000_000))
def test_a_moment_is_on_the_wall_or_an_hour_before(zone: Zone, moment_ms: int) -> None:
    back = zone.epoch_ms(zone.wall(moment_ms))
    assert moment_ms - back in (0, 3_600_000)


def test_an_unknown_zone_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as raised:
        named_zone("Middle/Earth")
    assert raised.value.code == "unknown_time_zone"
