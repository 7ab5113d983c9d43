"""Samples: no member is skipped for good, and none is drawn out of nothing."""

import pytest

from tests.sampling import TURNS, is_due, sample, turns


@pytest.mark.parametrize("size", [1, 2, 5, 96])
@pytest.mark.parametrize("every", [3, 5, 13])
def test_each_member_has_its_turn_and_each_day_has_a_member(size: int, every: int) -> None:
    members = range(size)
    days = [
        sample(members, every, day=f"2026-11-{day:02}", is_simulation=False) for day in range(1, 14)
    ]
    assert all(days)
    assert {one for drawn in days for one in drawn} == set(members)


def test_a_simulation_has_all_members() -> None:
    assert sample(range(9), 5, is_simulation=True) == range(9)


def test_each_member_has_each_kind_in_turn_and_each_day_has_every_kind() -> None:
    members, kinds = "abcdefg", ("classic", "connected", "thrift")
    days = [
        turns(members, kinds, day=day, is_simulation=False)
        for day in ("2026-11-29", "2026-11-30", "2026-12-01")
    ]
    for drawn in days:
        assert [one for one, _ in drawn] == list(members)
        assert {kind for _, kind in drawn} == set(kinds)
    whole = turns(members, kinds, is_simulation=True)
    assert {pair for drawn in days for pair in drawn} == set(whole)


@pytest.mark.parametrize("turn", range(TURNS))
def test_each_third_day_is_a_turns_own(turn: int) -> None:
    days = [is_due(turn, day=f"2026-11-{day}", is_simulation=False) for day in range(10, 19)]
    assert sum(days) == 3
    assert days[:3] == days[3:6] == days[6:]
    assert is_due(turn, is_simulation=True)
