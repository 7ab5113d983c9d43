"""The state of a table as values: plans, attempts, heartbeats, ledgers, and plans explained."""

from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.inspection.state.attempts import attempts, heartbeats, ledger_of
from lakewarden.engine.services.inspection.state.blockers import blockers
from lakewarden.engine.services.inspection.state.health import health
from lakewarden.engine.services.inspection.state.plans import (
    Verdict,
    explain_plan,
    explain_skipped,
    plans,
)
from lakewarden.engine.services.planning.plan_request import PlanRequest, Reason, Skipped
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Context, Service
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.sampling import IS_SIMULATION


def world_with_plan(*, cancellable: bool = True) -> tuple[ServiceWorld, str]:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    answer = schedule(world.context(40), COMPACTION, PlanRequest(cancellable=cancellable))
    assert isinstance(answer, Scheduled)
    return world, answer.instant


def test_a_plan_that_waits_shows_what_it_is_about() -> None:
    world, instant = world_with_plan()
    world.clock.advance(60_000)
    (plan,) = plans(world.context(60))
    assert (plan.instant, plan.service) == (instant, Service.COMPACTION)
    assert plan.state is InstantState.REQUESTED
    assert plan.cancellable
    assert (plan.partitions_count, plan.file_groups_count) == (2, 2)
    logs = [log.size_bytes for slice_ in world.slices() for log in slice_.log_files]
    assert plan.input_bytes is not None
    assert plan.input_bytes >= sum(logs) > 0
    assert (plan.attempt, plan.owner, plan.started_at_ms, plan.done_ratio) == (None,) * 4
    assert plan.age_seconds is not None
    assert 60 <= plan.age_seconds < 120


def test_a_plan_under_way_shows_who_works_on_it_how_far_it_is_and_until_when_it_counts() -> None:
    world, instant = world_with_plan()
    context = world.context(50, hoodie__client__heartbeat__interval_in_ms=5000)
    attempt = start(context, instant).attempt
    assert attempt is not None
    (plan,) = plans(world.context(60))
    assert plan.state is InstantState.INFLIGHT_HELD
    assert (plan.attempt, plan.owner) == (1, attempt.owner)
    now = world.clock.now_ms()
    assert (plan.started_at_ms, plan.last_heartbeat_at_ms) == (now, now)
    assert plan.expires_at_ms == now + 10_000
    world.clock.advance(10_001)
    (plan,) = plans(world.context(60))
    assert plan.state is InstantState.INFLIGHT_ABANDONED


def test_what_is_no_plan_is_no_row() -> None:
    world = new_service_world(MOR, inserted())
    publish(world.context(50), Action.DELTA_COMMIT, claims=True)
    assert plans(world.context(60)) == ()
    assert [one.service for one in attempts(world.context(60))] == ["deltacommit"]


def test_only_the_newest_attempt_is_live() -> None:
    world, instant = world_with_plan(cancellable=False)
    assert start(world.context(50), instant).attempt is not None
    world.clock.advance(3_600_000)
    assert start(world.context(51), instant).attempt is not None
    first, second = attempts(world.context(60))
    assert (first.attempt, first.is_live, first.is_newest) == (1, False, False)
    assert (second.attempt, second.is_live, second.is_newest) == (2, True, True)
    assert first.age_seconds == 3600


def test_signs_of_life_show_ours_and_the_standard_one() -> None:
    world, instant = world_with_plan()
    attempt = start(world.context(50), instant).attempt
    assert attempt is not None
    world.storage.put(".hoodie/.lakewarden/beats/1.1.json", b"{")
    world.clock.advance(90_000)
    own = [one for one in heartbeats(world.context(60)) if one.instant == instant]
    assert [(one.attempt, one.is_live, one.age_seconds) for one in own] == [
        (0, True, 90),
        (1, True, 90),
    ]
    assert own[1].owner == attempt.owner
    world.clock.advance(90_000)
    assert not any(one.is_live for one in heartbeats(world.context(60)))


def test_a_ledger_tells_who_tried_and_how_it_ended() -> None:
    world, instant = world_with_plan()
    assert ledger_of(world.context(60), instant) == ()
    assert start(world.context(50), instant).attempt is not None
    cancel(world.context(51), instant, "backfill first")
    claim, end = ledger_of(world.context(60), instant)
    assert (claim.number, claim.entry, claim.attempt) == (1, "claim", 1)
    assert (end.entry, end.reason, end.handed_back) == (
        "cancelled",
        "backfill first",
        ("p=a", "p=b"),
    )
    written = world.table(61).timeline().completed()[0].requested
    assert [one.entry for one in ledger_of(world.context(60), written)] == ["claim", "committed"]


def test_a_plan_is_explained_by_its_file_groups_and_their_sizes() -> None:
    world, instant = world_with_plan()
    rows = explain_plan(world.context(60), instant)
    sizes = {(one.partition, one.file_id): one.size_bytes for one in world.slices()}
    assert {(one.partition, one.file_id): one.bytes for one in rows} == sizes
    assert {one.verdict for one in rows} == {Verdict.CHOSEN}
    assert {one.log_files_count for one in rows} == {1}
    assert {one.held_by_instant for one in rows} == {instant}


def test_what_a_plan_does_not_have_is_explained_too() -> None:
    left = Skipped(
        partition="p=a",
        file_id="f",
        reason=Reason.BELOW_THRESHOLD,
        detail="small",
        bytes=7,
        log_files=2,
        held_by="1",
    )
    (row,) = explain_skipped((left,))
    assert (row.verdict, row.reason, row.bytes, row.log_files_count, row.held_by_instant) == (
        Verdict.SKIPPED,
        "below_threshold: small",
        7,
        2,
        "1",
    )
    world, instant = world_with_plan()
    cancel(world.context(50), instant, "gone")
    with pytest.raises(InvalidRequest) as caught:
        explain_plan(world.context(60), instant)
    assert caught.value.code == "unknown_plan"


@pytest.mark.parametrize("view", [plans, attempts, blockers, health])
def test_what_ends_while_one_looks_is_no_error(view: Callable[[Context], object]) -> None:
    for at in count(1, 1 if IS_SIMULATION else 5):
        world, instant = world_with_plan()
        hook = Hook(at, partial(cancel, world.context(50), instant, "in the way"))
        view(world.context(60, hook.storage(world.storage)))
        if not hook.has_happened:
            break
    assert plans(world.context(60))


def test_looking_changes_nothing_and_a_table_at_rest_costs_a_few_calls() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    files = {entry.path: entry.modified_ms for entry in world.storage.walk("")}
    storage = FaultyStorage(world.storage)
    context = world.context(60, storage)
    before = len(storage.calls)
    assert plans(context) == ()
    assert attempts(context) == ()
    assert len(storage.calls) - before <= 4
    world_with, instant = world_with_plan()
    start(world_with.context(50), instant)
    stood = {entry.path: entry.modified_ms for entry in world_with.storage.walk("")}
    for look in (plans, attempts, heartbeats):
        assert look(world_with.context(60))
    assert {entry.path: entry.modified_ms for entry in world_with.storage.walk("")} == stood
    assert {entry.path: entry.modified_ms for entry in world.storage.walk("")} == files
