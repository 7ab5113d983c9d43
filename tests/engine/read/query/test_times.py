"""Times of callers: instants and dates as they are, and moments of other zones in the table's."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lakewarden.engine.kernel.clock import UTC as IN_UTC
from lakewarden.engine.kernel.clock import Zone, named_zone
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.plan_query import parse_time, required_time

BERLIN = named_zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "zone", "instant"),
    [
        ("20261118101500123", BERLIN, "20261118101500123"),
        ("20261118101500", BERLIN, "20261118101500999"),
        ("20261118", BERLIN, "20261118"),
        ("2026-11-18 10:15:00.123", BERLIN, "20261118101500123"),
        ("2026-11-18T10:15:00Z", IN_UTC, "20261118101500000"),
        ("2026-11-18T10:15:00Z", BERLIN, "20261118111500000"),
        ("2026-11-18 10:15:00-05:00", IN_UTC, "20261118151500000"),
        (datetime(2026, 11, 18, 10, 15, 0, 123_000), BERLIN, "20261118101500123"),
        (datetime(2026, 7, 18, 10, 15, tzinfo=UTC), BERLIN, "20260718121500000"),
        (
            datetime(2026, 11, 18, 1, tzinfo=timezone(timedelta(hours=3))),
            IN_UTC,
            "20261117220000000",
        ),
        (None, BERLIN, None),
    ],
)
def test_a_time_is_what_the_timeline_of_the_table_would_say(
    given: Any, zone: Zone, instant: str | None
) -> None:
    assert parse_time(given, zone) == instant


@pytest.mark.parametrize("given", ["", "soon", "2026-13-01", 20261118, 1.5, b"20261118"])
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_time(given, IN_UTC)
    assert refused.value.code == "bad_time"


def test_a_time_that_is_required_can_not_be_left_out() -> None:
    with pytest.raises(InvalidRequest) as refused:
        required_time(None, IN_UTC)  # type: ignore[arg-type]
    assert refused.value.code == "bad_time"
