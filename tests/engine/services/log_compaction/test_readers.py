"""What readers take for a log compaction that is pending, rolled back, completed or compacted."""

import pickle
from functools import cache

import pytest

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.planned_slices import operation_of
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.log_compaction.run import Folding, FoldTask
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.write.settings import write_spec
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write

HISTORY = (inserted(4), updated(4, ts=2), Write("delete", (row("k2", 3, "a"),)), updated(2, ts=4))
THRESHOLD = {"hoodie__log__compaction__blocks__threshold": 2}


@cache
def _history() -> ServiceWorld:
    return new_service_world(MOR, *HISTORY)


@pytest.fixture
def world() -> ServiceWorld:
    copied = _history().copy()
    # Whatever is written from now on has other ids than the history.
    copied.clock.advance(1000_000)
    return copied


def planned(world: ServiceWorld, service: TableService = LOG_COMPACTION) -> str:
    answer = schedule(world.context(**THRESHOLD), service, PlanRequest())
    assert isinstance(answer, Scheduled), answer
    world.clock.advance(1000)
    return answer.instant


def executed(world: ServiceWorld, instant: str, service: TableService = LOG_COMPACTION) -> None:
    execute(world.context(**THRESHOLD), service, instant)
    world.clock.advance(1000)


def worked_on(world: ServiceWorld, instant: str) -> None:
    """Its files are there, and nothing is committed."""
    context = world.context(**THRESHOLD)
    attempt = start(context, instant).attempt
    assert attempt is not None
    plan = world.table(60).timeline()
    files = next(one for one in plan.files if one.instant.requested == instant)
    assert files.requested is not None
    LOG_COMPACTION.work(context, attempt, world.storage.read(files.requested.entry.path))
    attempt.stop()


def files_of(world: ServiceWorld, instant: str) -> list[str]:
    found = []
    for entry in world.storage.walk(""):
        file = parse_file_name(entry.name, entry.size_bytes)
        if file is not None and not entry.path.startswith(".hoodie") and file.instant == instant:
            found.append(entry.path)
    return found


def seen_of(world: ServiceWorld, instant: str) -> list[str]:
    """The files of an instant that readers look into."""
    return [
        slice_.path(log)
        for slice_ in world.slices()
        for log in slice_.log_files
        if log.instant == instant
    ]


def assert_rows(world: ServiceWorld, *more: Write) -> None:
    assert world.rows() == contents(MOR, *HISTORY, *more)
    assert world.rows(use_metadata=False) == world.rows()


def test_one_that_is_planned_changes_nothing(world: ServiceWorld) -> None:
    before = world.slices()
    planned(world)
    assert world.slices() == before
    assert_rows(world)


def test_files_of_one_under_way_are_not_looked_at(world: ServiceWorld) -> None:
    instant = planned(world)
    worked_on(world, instant)
    assert len(files_of(world, instant)) == 2
    assert seen_of(world, instant) == []
    assert_rows(world)


def test_one_that_is_cancelled_leaves_no_file(world: ServiceWorld) -> None:
    instant = planned(world)
    worked_on(world, instant)
    world.clock.advance(1000_000)
    cancel(world.context(), instant, "nobody wants it")
    assert files_of(world, instant) == []
    assert_rows(world)


def test_a_file_that_comes_to_light_after_the_rollback_is_not_looked_at(
    world: ServiceWorld,
) -> None:
    instant = planned(world)
    worked_on(world, instant)
    left = {path: world.storage.read(path) for path in files_of(world, instant)}
    world.clock.advance(1000_000)
    cancel(world.context(), instant, "nobody wants it")
    for path, content in left.items():
        world.storage.put(path, content)
    assert len(files_of(world, instant)) == 2
    assert seen_of(world, instant) == []
    assert_rows(world)


def test_one_that_has_completed_stands_beside_the_logs_it_replaces(world: ServiceWorld) -> None:
    before = {slice_.key: slice_ for slice_ in world.slices()}
    instant = planned(world)
    executed(world, instant)
    for slice_ in world.slices():
        old = before[slice_.key]
        assert slice_.base_file == old.base_file
        assert slice_.log_files[:-1] == old.log_files
        assert slice_.log_files[-1].instant == instant


def test_one_that_is_rolled_back_gives_way_to_the_logs_again(world: ServiceWorld) -> None:
    before = world.slices()
    instant = planned(world)
    executed(world, instant)
    world.table(70).rollback(instant)
    assert world.slices() == before
    assert files_of(world, instant) == []
    assert_rows(world)


def test_a_compaction_takes_it_in(world: ServiceWorld) -> None:
    executed(world, planned(world))
    late = updated(2, ts=9)
    world.write(late)
    compaction = planned(world, COMPACTION)
    assert_rows(world, late)
    executed(world, compaction, COMPACTION)
    assert {slice_.base_instant for slice_ in world.slices()} == {compaction}
    assert all(not slice_.log_files for slice_ in world.slices())
    assert_rows(world, late)


def test_logs_above_a_pending_compaction_are_not_compacted_beside_it(world: ServiceWorld) -> None:
    planned(world, COMPACTION)
    world.write(updated(4, ts=8), updated(4, ts=9))
    assert not schedule(world.context(**THRESHOLD), LOG_COMPACTION, PlanRequest())


def test_the_work_can_be_done_by_other_processes(world: ServiceWorld) -> None:
    instant = planned(world)
    context = world.context(**THRESHOLD)
    attempt = start(context, instant).attempt
    assert attempt is not None
    state = load_snapshot(world.storage)
    spec = write_spec(state, state.schema(), context.settings, instant=instant, attempt=1)
    tasks = [FoldTask(0, operation_of(world.slices()[0]))]
    work = FencedTask(FencedTaskContext.here(world.storage, attempt), Folding(spec))
    far_work, (far_task,) = pickle.loads(pickle.dumps((work, tasks)))
    file = far_work.tried(2)(far_task)
    attempt.stop()
    assert files_of(world, instant) == [file.stat.path]
    assert file.stat.path.endswith(".log.1_0-2-1")
    assert file.stat.num_writes + file.stat.num_deletes == file.stat.total_updated_records_compacted
