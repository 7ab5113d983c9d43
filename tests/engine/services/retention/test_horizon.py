"""The horizon: which instant is the earliest that stays readable, and what holds it back."""

import pytest

from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.services.retention.horizon import Horizon, Writes, find_horizon
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, epoch_ms

HOUR_MS = 3_600_000


def time(hour: int, minute: int = 0) -> str:
    return f"20260101{hour:02d}{minute:02d}00000"


def done(requested: str, completed: str) -> Instant:
    return Instant(requested, Action.COMMIT, State.COMPLETED, completed)


def under_way(requested: str, action: Action = Action.COMMIT) -> Instant:
    return Instant(requested, action, State.INFLIGHT)


# A commit at every full hour, each of which takes a minute.
HOURLY = tuple(done(time(hour), time(hour, 1)) for hour in range(10))


def horizon(
    completed: tuple[Instant, ...] = HOURLY,
    pending: tuple[Instant, ...] = (),
    retention: CleanRetention | None = None,
    **limits: object,
) -> Horizon:
    now_ms = epoch_ms(time(10), UTC)
    assert now_ms is not None
    writes = Writes(completed=completed, pending=pending)
    kept = retention or CleanRetention(commits=3)
    return find_horizon(writes, kept, now_ms=now_ms, zone=UTC, **limits)


def requested(found: Horizon) -> str | None:
    return None if found.instant is None else found.instant.requested


def test_it_is_the_first_of_the_retained_commits() -> None:
    assert requested(horizon()) == time(7)


def test_as_many_commits_as_are_retained_are_too_few() -> None:
    found = horizon(retention=CleanRetention(commits=10))
    assert found.instant is None
    assert "10 commits, and 10 are retained" in found.why


def test_the_last_to_complete_are_retained_whenever_they_were_begun() -> None:
    slow = done(time(2, 30), time(9, 30))
    found = horizon(completed=tuple(sorted((*HOURLY, slow))))
    assert requested(found) == time(2, 30)


@pytest.mark.parametrize("action", [Action.COMMIT, Action.COMPACTION, Action.CLUSTERING])
def test_what_is_under_way_holds_it_back_to_the_commit_before(action: Action) -> None:
    pending = under_way(time(4, 30), action)
    found = horizon(pending=(under_way(time(6, 30)), pending))
    assert requested(found) == time(4)
    assert found.held_by == pending
    assert time(4, 30) in found.why


def test_what_began_later_does_not_hold_it_back() -> None:
    found = horizon(pending=(under_way(time(8, 30)),))
    assert requested(found) == time(7)
    assert found.held_by is None


def test_without_a_commit_before_what_is_under_way_there_is_none() -> None:
    found = horizon(completed=HOURLY[1:], pending=(under_way(time(0)),))
    assert found.instant is None
    assert found.held_by is not None


def test_hours_count_from_now_and_by_completion() -> None:
    by_hours = CleanRetention(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours=3)
    assert requested(horizon(retention=by_hours)) == time(7)
    edge = done(time(6, 59), time(7))
    found = horizon(completed=(*HOURLY[:7], edge, *HOURLY[7:]), retention=by_hours)
    assert requested(found) == time(6, 59)


def test_without_a_commit_within_the_hours_nothing_is_old() -> None:
    by_hours = CleanRetention(policy=CleanPolicy.KEEP_LATEST_BY_HOURS, hours=3)
    found = horizon(completed=HOURLY[:4], retention=by_hours)
    assert found.instant is None
    assert "3 hours" in found.why


def test_a_limit_lets_it_go_so_many_commits_forward_only() -> None:
    assert requested(horizon(last=time(2), commits_max=2)) == time(4)
    assert requested(horizon(last=time(2), commits_max=20)) == time(7)
    assert requested(horizon(commits_max=1)) == time(1)
