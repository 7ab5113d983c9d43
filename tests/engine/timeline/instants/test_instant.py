"""Instants: their order, and their times as moments."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import UTC, named_zone
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, epoch_ms, time_text

CHICAGO = named_zone("America/Chicago")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("20260307222557123", 1772922357123),
        ("20260307222557", 1772922357999),
        ("20260307222557123001", 1772922357123),
        ("19700101000000000", 0),
    ],
)
def test_a_time_is_a_moment(time: str, expected: int) -> None:
    assert epoch_ms(time, UTC) == expected


@pytest.mark.parametrize(
    "time",
    [
        "00000000000000000",
        "00000000000000011",
        "00000000000000011001",
        "00000000000001",
        "20261301000000000",
        "2026030722255712",
        "",
        "x0260307222557123",
        "２0260307222557123",
    ],
)
def test_what_is_no_date_is_no_moment(time: str) -> None:
    assert epoch_ms(time, UTC) is None


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_moment_or_none(time: str) -> None:
    assert isinstance(epoch_ms(time, CHICAGO), int | None)


@settings(deadline=None)
@given(st.from_regex(r"[0-9]{17}", fullmatch=True))
def test_any_digits_are_a_moment_or_none(time: str) -> None:
    moment_ms = epoch_ms(time, UTC)
    assert moment_ms is None or time_text(moment_ms, UTC) == time


def test_a_local_time_is_read_in_its_zone() -> None:
    assert epoch_ms("20260307162557000", CHICAGO) == epoch_ms("20260307222557000", UTC)


@settings(deadline=None)
@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_the_text_of_a_moment_stands_for_it(moment_ms: int) -> None:
    time = time_text(moment_ms, UTC)
    assert len(time) == 17
    assert epoch_ms(time, UTC) == moment_ms


def test_services_complete_under_other_names() -> None:
    renamed = {action: action.completed_as for action in Action if action.completed_as != action}
    assert renamed == {
        Action.COMPACTION: Action.COMMIT,
        Action.LOG_COMPACTION: Action.DELTA_COMMIT,
        Action.CLUSTERING: Action.REPLACE_COMMIT,
    }


def test_order_is_by_time_then_action_then_state() -> None:
    ordered = (
        Instant("1", Action.SAVEPOINT, State.INFLIGHT),
        Instant("2", Action.COMPACTION, State.REQUESTED),
        Instant("2", Action.COMPACTION, State.INFLIGHT),
        Instant("2", Action.COMMIT, State.COMPLETED, "3"),
        Instant("2", Action.DELTA_COMMIT, State.REQUESTED),
        Instant("2", Action.SAVEPOINT, State.COMPLETED, "4"),
    )
    mixed = [ordered[at] for at in (3, 5, 0, 2, 4, 1)]
    assert tuple(sorted(mixed)) == ordered
