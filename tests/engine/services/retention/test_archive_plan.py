"""Planning an archival: what leaves, what stays, and what keeps it, as pure choices."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.services.retention.archive_plan import (
    ArchiveHold,
    ArchiveLimits,
    ArchivePlan,
    Barrier,
    behind,
    compaction_barrier,
    limited,
    plan_archive,
)
from lakewarden.engine.timeline.instants.instant import Action, Instant, State

FEW = ArchiveLimits(keep_min=2, keep_max=4)


def done(time: int, action: Action = Action.COMMIT, completed: int | None = None) -> Instant:
    return Instant(f"{time:03d}", action, State.COMPLETED, f"{completed or time:03d}5")


def pending(time: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(f"{time:03d}", action, State.REQUESTED)


def times(plan: ArchivePlan) -> list[int]:
    return [int(one.requested) for one in plan.instants]


def commits(count: int) -> list[Instant]:
    return [done(at) for at in range(1, count + 1)]


def test_up_to_the_maximum_nothing_is_archived() -> None:
    plan = plan_archive(commits(4), [], FEW)
    assert plan.instants == ()
    assert plan.held is not None
    assert plan.held.hold is ArchiveHold.KEPT
    assert "starts at 5" in plan.held.why


def test_above_it_all_but_the_minimum_leave_oldest_first() -> None:
    plan = plan_archive(commits(5), [], FEW)
    assert times(plan) == [1, 2, 3]
    assert plan.oldest_kept == done(4)
    assert plan.held is not None
    assert plan.held.hold is ArchiveHold.KEPT


def test_a_pending_write_keeps_the_one_before_it() -> None:
    plan = plan_archive([*commits(6), pending(4, Action.COMPACTION)], [], FEW)
    assert times(plan) == [1, 2]
    assert plan.oldest_kept == done(3)
    assert plan.held is not None
    assert (plan.held.hold, plan.held.instant) == (ArchiveHold.PENDING, "004")


def test_the_oldest_of_all_keeps_everything_while_it_is_pending() -> None:
    plan = plan_archive([pending(0), *commits(6)], [], FEW)
    assert plan.instants == ()
    assert plan.held is not None
    assert plan.held.instant == "000"


@pytest.mark.parametrize("action", [Action.RESTORE, Action.INDEXING])
def test_what_needs_the_timeline_behind_it_holds_it(action: Action) -> None:
    assert times(plan_archive([*commits(6), pending(3, action)], [], FEW)) == [1]


@pytest.mark.parametrize("action", [Action.CLEAN, Action.ROLLBACK])
def test_a_pending_clean_or_rollback_alone_holds_nothing(action: Action) -> None:
    assert times(plan_archive([*commits(6), pending(3, action)], [], FEW)) == [1, 2, 3, 4]


def test_a_savepoint_holds_its_write_and_what_is_newer() -> None:
    plan = plan_archive([*commits(6), done(3, Action.SAVEPOINT)], [], FEW)
    assert times(plan) == [1, 2]
    assert plan.held is not None
    assert plan.held.hold is ArchiveHold.SAVEPOINT


def test_beyond_savepoints_only_their_own_writes_stay() -> None:
    beyond = ArchiveLimits(2, 4, goes_beyond_savepoints=True)
    plan = plan_archive([*commits(6), done(3, Action.SAVEPOINT)], [], beyond)
    assert times(plan) == [1, 2, 4, 5]
    assert plan.oldest_kept == done(6)


def test_cleans_and_rollbacks_go_with_the_writes_around_them() -> None:
    others = [done(0, Action.CLEAN), done(2, Action.ROLLBACK), done(4, Action.CLEAN)]
    plan = plan_archive([*commits(5), *others], [], FEW)
    assert [(int(one.requested), one.action) for one in plan.instants] == [
        (0, Action.CLEAN),
        (1, Action.COMMIT),
        (2, Action.COMMIT),
        (2, Action.ROLLBACK),
        (3, Action.COMMIT),
    ]


def test_restores_stay_as_java_keeps_them() -> None:
    assert times(plan_archive([*commits(5), done(0, Action.RESTORE)], [], FEW)) == [1, 2, 3]


def test_the_lowest_barrier_is_the_one_named() -> None:
    low = Barrier(hold=ArchiveHold.RETAINED, before="002", why="low")
    high = Barrier(hold=ArchiveHold.METADATA, before="003", why="high")
    plan = plan_archive(commits(6), [high, low], FEW)
    assert times(plan) == [1]
    assert plan.held == low


def test_a_barrier_that_keeps_nothing_back_is_not_named() -> None:
    far = Barrier(hold=ArchiveHold.METADATA, before="006", why="far")
    plan = plan_archive(commits(6), [far], FEW)
    assert times(plan) == [1, 2, 3, 4]
    assert plan.held is not None
    assert plan.held.hold is ArchiveHold.KEPT


def test_the_next_compaction_finds_the_deltacommits_it_counts() -> None:
    deltas = [done(at, Action.DELTA_COMMIT) for at in range(1, 9)]
    barrier = compaction_barrier(deltas, 5)
    assert barrier is not None
    assert barrier.before == "004"
    fewer = compaction_barrier([done(3), *deltas[4:]], 5)
    assert fewer is not None
    assert (fewer.before, fewer.instant) == ("003", "003")
    assert compaction_barrier([], 5) is None


def test_a_deltacommit_that_completed_after_the_compaction_is_counted_wherever_it_began() -> None:
    late = done(1, Action.DELTA_COMMIT, completed=9)
    barrier = compaction_barrier([late, done(3)], 5)
    assert barrier is not None
    assert barrier.before == "001"


def test_the_write_before_a_time_stays_with_it() -> None:
    assert behind(commits(3), "003") == "002"
    assert behind(commits(3), "001") == "001"


def test_a_backlog_is_cut_from_its_beginning() -> None:
    plan = plan_archive(commits(9), [], FEW)
    assert times(limited(plan, 3)) == [1, 2, 3]


instants = st.lists(
    st.tuples(
        st.integers(1, 60),
        st.sampled_from([*[Action.COMMIT] * 6, Action.CLEAN, Action.ROLLBACK, Action.COMPACTION]),
        st.integers(0, 9),
    ),
    max_size=40,
    unique_by=lambda one: one[0],
)


def drawn(drawings: Sequence[tuple[int, Action, int]]) -> list[Instant]:
    return [
        pending(time, action)
        if chance == 0 or action is Action.COMPACTION
        else done(time, action, time + chance)
        for time, action, chance in drawings
    ]


@given(instants, st.integers(1, 6), st.integers(1, 6), st.integers(0, 60))
def test_whatever_the_timeline_no_write_stays_behind_one_that_left(
    drawings: list[tuple[int, Action, int]], fewest: int, more: int, barrier: int
) -> None:
    known = drawn(drawings)
    held = Barrier(hold=ArchiveHold.METADATA, before=f"{barrier:03d}", why="")
    plan = plan_archive(known, [held], ArchiveLimits(fewest, fewest + more))
    left = {one.key for one in plan.instants}
    writes = sorted(one for one in known if one.action.is_write)
    stayed = [one for one in writes if one.key not in left]
    gone = [one for one in writes if one.key in left]
    assert all(one.requested < held.before for one in gone)
    assert not (gone and stayed) or max(gone) < min(stayed)
    assert all(one.is_completed for one in plan.instants)
    completed = [one for one in stayed if one.is_completed]
    assert not gone or len(completed) >= fewest
    assert (plan.oldest_kept is None) == (plan.held is None)
