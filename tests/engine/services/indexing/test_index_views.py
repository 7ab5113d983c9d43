"""What is shown of an index at each step of its build: how far it is, and what it waits for."""

from contextlib import suppress

import pytest

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.services.indexing.catch_up import CHECK_TIMEOUT_SECONDS
from lakewarden.engine.services.indexing.index_views import IndexState, IndexView
from lakewarden.engine.services.indexing.run_build import run_build
from lakewarden.engine.services.indexing.schedule_build import schedule_build
from lakewarden.engine.testing.faults import Crashed
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.services.indexing.builds_kit import (
    FIRST_BASE_FILE,
    INDEX,
    LAST_NOTE,
    READY,
    RECORDS,
    WRITE_BEGUN,
    Before,
    at,
    pending_builds,
    with_file_lock,
)
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import carry_out

HISTORY = (inserted(), updated())
MORE = Write("upsert", (row("x1", 9), row("k1", 9, "b")))
IN_FIVE_SECONDS = {CHECK_TIMEOUT_SECONDS.key.replace(".", "__"): 5}


def view_of(world: ServiceWorld) -> IndexView:
    (view,) = (one for one in world.table(90).index_states() if one.partition == INDEX)
    return view


def newest(world: ServiceWorld) -> str:
    return world.snapshot().timeline.active.completed()[-1].requested


def built_until(step: str | int) -> tuple[ServiceWorld, IndexView]:
    """What is shown right before a step of a build that lives."""
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    plan = schedule_build(world.context(60), RECORDS)
    seen: list[IndexView] = []
    stage = at(world, step, lambda: seen.append(view_of(world)))
    run_build(world.context(61, stage), plan.instant)
    return world, seen[0]


def test_a_planned_index_says_what_it_will_be_built_on() -> None:
    world = new_service_world(MOR, *HISTORY)
    base = newest(world)
    plan = schedule_build(world.context(60), RECORDS)
    world.write(MORE)
    view = view_of(world)
    assert (view.state, view.instant, view.owner) == (IndexState.PLANNED, plan.instant, None)
    assert (view.indexed_up_to, view.caught_up_to) == (base, newest(world))
    assert (view.lag_count, view.done_ratio, view.reason) == (0, 0.0, None)


@pytest.mark.parametrize(("step", "groups"), [(FIRST_BASE_FILE, 0), (LAST_NOTE, 9)])
def test_a_build_says_how_many_of_its_base_files_are_there(step: str, groups: int) -> None:
    world, view = built_until(step)
    assert (view.state, view.done_ratio) == (IndexState.BUILDING, groups / 10)
    assert (view.waits_for, view.reason) == (None, None)
    claim = read_ledger(world.storage, view.instant or "").last_claim
    assert claim is not None
    assert view.owner == f"{claim.owner} on {claim.host}"
    assert view.entries_count <= len(world.rows())


def test_a_build_with_all_base_files_catches_up() -> None:
    _, view = built_until(4)
    assert (view.state, view.done_ratio, view.lag_count) == (IndexState.CATCHING_UP, 1.0, 0)


def test_a_build_that_has_committed_and_is_not_listed_is_no_ready_index() -> None:
    world = with_file_lock(new_service_world(MOR, *HISTORY))
    plan = schedule_build(world.context(60), RECORDS)
    seen: list[IndexView] = []

    def look() -> None:
        if read_ledger(world.storage, plan.instant).ends_in is LedgerEnd.COMMITTED:
            seen.append(view_of(world))
            raise Crashed

    with suppress(Crashed):
        run_build(world.context(61, at(world, READY, look)), plan.instant)
    assert seen[0].state is IndexState.CATCHING_UP
    assert "has committed" in (seen[0].reason or "")


def test_a_ready_index_knows_of_the_newest_write() -> None:
    world, _ = built_until(4)
    world.write(MORE)
    view = view_of(world)
    assert (view.state, view.reason, view.lag_count) == (IndexState.READY, None, 0)
    assert view.caught_up_to == newest(world)
    assert (view.indexed_up_to or "z") < newest(world)
    # The base has six rows; the log has one that is new.
    assert view.entries_count == 7


def test_a_catch_up_names_what_it_waits_for_and_goes_on_later() -> None:
    world = new_service_world(MOR, *HISTORY)
    base = newest(world)
    seen: list[IndexView] = []

    def build() -> None:
        plan = schedule_build(world.context(60), RECORDS)
        with pytest.raises(Conflict) as waiting:
            run_build(world.context(61, **IN_FIVE_SECONDS), plan.instant)
        seen.append(view_of(world))
        assert seen[0].waits_for == waiting.value.parameters["waits_for"]

    carry_out(world.table(55, Before(world.storage, world.clock, WRITE_BEGUN, build)), MORE)
    assert (seen[0].state, seen[0].lag_count) == (IndexState.CATCHING_UP, 1)
    assert (seen[0].indexed_up_to, seen[0].caught_up_to) == (base, base)
    assert "did not wait longer" in (seen[0].reason or "")
    (instant,) = pending_builds(world)
    run_build(world.context(62), instant)
    assert view_of(world).state is IndexState.READY


def test_a_build_whose_process_died_is_abandoned_until_it_is_resumed() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)

    def die() -> None:
        raise Crashed

    with pytest.raises(Crashed):
        run_build(
            world.context(61, Before(world.storage, world.clock, LAST_NOTE, die)), plan.instant
        )
    world.clock.advance(DEAD_AFTER_MS)
    view = view_of(world)
    assert (view.state, view.done_ratio) == (IndexState.ABANDONED, 0.9)
    assert "run_indexing" in (view.reason or "")
    run_build(world.context(62), plan.instant)
    assert view_of(world).state is IndexState.READY


def test_a_cancelled_build_is_not_shown_any_more() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = schedule_build(world.context(60), RECORDS)
    cancel(world.context(65), plan.instant, "not wanted")
    assert INDEX not in {one.partition for one in world.table(90).index_states()}


def test_an_index_that_a_write_has_not_told_is_stale() -> None:
    world, _ = built_until(4)
    world.write(MORE)
    for entry in world.storage.walk(".hoodie/metadata"):
        if newest(world) in entry.name:
            world.storage.delete(entry.path)
    view = view_of(world)
    assert view.state is IndexState.STALE
    assert newest(world) in (view.reason or "")
    assert "create_metadata_table" in (view.reason or "")
