"""What a stuck plan holds back: clean and archive name it, and go on once it is cancelled."""

import pytest

from lakewarden.engine.services.archive.run import archive
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.transaction.cancel.cancel import Ending, cancel
from lakewarden.engine.transaction.start import start
from tests.engine.services.service_table import COW, MOR, ServiceWorld, new_service_world, rows
from tests.rfc.plans import SWEPT_AFTER_MS
from tests.writing.model import Write
from tests.writing.shapes import Shape

STUCK: dict[str, tuple[TableService, Shape]] = {
    "compaction": (COMPACTION, MOR),
    "log_compaction": (LOG_COMPACTION, MOR),
    "clustering": (CLUSTERING, COW),
}
SETTINGS = {
    "hoodie__log__compaction__blocks__threshold": "2",
    "hoodie__clustering__plan__strategy__single__group__clustering__enabled": "true",
    "hoodie__clean__commits__retained": "1",
    "hoodie__keep__min__commits": "2",
    "hoodie__keep__max__commits": "3",
    "hoodie__write__lock__num_retries": "0",
}
STUCK_FOR_MS = 14 * 24 * 60 * 60_000
KEYS = tuple(f"k{number}" for number in range(4))


def upserts(partition: str, *times: int) -> tuple[Write, ...]:
    """Versions of the same rows, each of which leaves a file behind that a clean may remove."""
    return tuple(Write("upsert", rows(KEYS, time, partition)) for time in times)


def stuck(name: str, *, is_started: bool) -> tuple[ServiceWorld, str]:
    """A plan of weeks ago for partition a, while partition b is written to."""
    service, shape = STUCK[name]
    world = new_service_world(shape, *upserts("b", 1), *upserts("a", 1, 2, 3))
    plan_request = PlanRequest(cancellable=False, partitions=("p=a",))
    plan = schedule(world.context(50, **SETTINGS), service, plan_request)
    assert isinstance(plan, Scheduled), plan
    if is_started:
        start(world.context(51, **SETTINGS), plan.instant)
    world.clock.advance(STUCK_FOR_MS)
    for time in range(2, 9):
        world.write(Write("overwrite_partitions", rows(KEYS, time, "b")))
    return world, plan.instant


@pytest.mark.parametrize("name", STUCK)
@pytest.mark.parametrize("is_started", [False, True], ids=["requested", "inflight"])
def test_a_clean_names_a_stuck_plan_and_goes_on_after_its_cancel(
    name: str, is_started: bool
) -> None:
    world, plan = stuck(name, is_started=is_started)
    expected = world.rows()
    cleaned = clean(world.context(60, **SETTINGS))
    assert cleaned.held_by == plan
    answer = cancel(world.context(61, **SETTINGS), plan, "weeks old", force=True)
    assert answer.outcome is Ending.CANCELLED
    assert "p=a" in answer.handed_back
    again = clean(world.context(62, **SETTINGS))
    assert again.held_by is None
    assert again.files_deleted > cleaned.files_deleted
    assert world.rows() == world.rows(use_metadata=False) == expected


def test_an_archive_names_a_stuck_plan_and_goes_on_after_its_cancel() -> None:
    world, plan = stuck("clustering", is_started=False)
    archived = archive(world.context(60, **SETTINGS))
    assert archived.held is not None
    assert archived.held.instant == plan
    cancel(world.context(61, **SETTINGS), plan, "weeks old", force=True)
    # What was cancelled is looked at once more before it is forgotten.
    world.clock.advance(SWEPT_AFTER_MS)
    clean(world.context(62, **SETTINGS))
    again = archive(world.context(63, **SETTINGS))
    assert max(again.instants) > max(archived.instants)
    assert again.held is None or again.held.instant != plan
