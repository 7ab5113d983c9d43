"""Samples: no member is skipped for good, and none is drawn out of nothing."""

import pytest

from tests.sampling import sample


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
