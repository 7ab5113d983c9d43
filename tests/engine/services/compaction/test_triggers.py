"""Triggers: when a compaction that nobody asks for is due."""

import pytest

from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.compaction.settings import (
    DueCompaction,
    TimelineProgress,
    Trigger,
    is_due,
    progress_of,
    reported,
)
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest, Reason, Refusal
from lakewarden.engine.services.planning.schedule import Scheduled, draft, schedule
from tests.engine.services.service_table import MOR, inserted, new_service_world, updated

MANY = TimelineProgress(since_completed=5, since_requested=2, began="x")
FEW = TimelineProgress(since_completed=4, since_requested=5, began="x")


@pytest.mark.parametrize(
    ("trigger", "progress", "elapsed", "due"),
    [
        (Trigger.NUM_COMMITS, MANY, 0, True),
        (Trigger.NUM_COMMITS, FEW, 99, False),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, MANY, 99, False),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, FEW, 0, True),
        (Trigger.TIME_ELAPSED, FEW, 60, True),
        (Trigger.TIME_ELAPSED, MANY, 59, False),
        (Trigger.NUM_AND_TIME, MANY, 59, False),
        (Trigger.NUM_AND_TIME, FEW, 60, False),
        (Trigger.NUM_AND_TIME, MANY, 60, True),
        (Trigger.NUM_OR_TIME, FEW, 59, False),
        (Trigger.NUM_OR_TIME, MANY, 59, True),
        (Trigger.NUM_OR_TIME, FEW, 60, True),
    ],
)
def test_each_trigger_waits_for_what_it_is_named_after(
    trigger: Trigger, progress: TimelineProgress, elapsed: float, due: bool
) -> None:
    assert is_due(DueCompaction(trigger, 5, 60), progress, elapsed) is due


def test_commits_are_counted_since_the_last_compaction_and_since_the_last_request() -> None:
    world = new_service_world(MOR)
    assert progress_of(world.snapshot().timeline.active) is None
    world.write(inserted(), updated(ts=2))
    first = world.snapshot().timeline.active.instants[0].requested
    assert progress_of(world.snapshot().timeline.active) == TimelineProgress(2, 2, first)
    plan = schedule(world.context(), COMPACTION, PlanRequest())
    assert isinstance(plan, Scheduled)
    assert progress_of(world.snapshot().timeline.active) == TimelineProgress(2, 0, first)
    world.write(updated(ts=3))
    assert progress_of(world.snapshot().timeline.active) == TimelineProgress(3, 1, first)
    execute(world.context(), COMPACTION, plan.instant)
    world.write(updated(ts=4))
    # What completed after the plan is not in it.
    assert progress_of(world.snapshot().timeline.active) == TimelineProgress(2, 2, plan.instant)


def test_only_who_honours_the_trigger_waits_for_it() -> None:
    world = new_service_world(MOR, inserted(), updated())
    waiting = draft(world.context(), COMPACTION, PlanRequest(honour_trigger=True))
    assert isinstance(waiting, Refusal)
    assert waiting.reason is Reason.TRIGGER_NOT_REACHED
    assert waiting.why == "NUM_COMMITS waits for 5 delta commits (there are 2)."


@pytest.mark.parametrize(
    ("trigger", "waits"),
    [
        (Trigger.NUM_COMMITS, "3 delta commits (there are 4)"),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, "3 delta commits (there are 5)"),
        (Trigger.TIME_ELAPSED, "60 seconds (7 have passed)"),
        (Trigger.NUM_AND_TIME, "3 delta commits (there are 4) and 60 seconds (7 have passed)"),
        (Trigger.NUM_OR_TIME, "3 delta commits (there are 4) or 60 seconds (7 have passed)"),
    ],
)
def test_a_trigger_tells_what_it_waits_for(trigger: Trigger, waits: str) -> None:
    assert reported(DueCompaction(trigger, 3, 60), FEW, 7) == f"{trigger} waits for {waits}."


def test_a_wish_waits_for_no_trigger() -> None:
    world = new_service_world(MOR, inserted(), updated())
    assert isinstance(draft(world.context(), COMPACTION, PlanRequest()), Draft)
    context = world.context(hoodie__compact__inline__max__delta__commits=2)
    assert isinstance(draft(context, COMPACTION, PlanRequest(honour_trigger=True)), Draft)


def test_elapsed_time_counts_from_the_last_compaction() -> None:
    world = new_service_world(MOR, inserted(), updated())
    context = world.context(
        hoodie__compact__inline__trigger__strategy="TIME_ELAPSED",
        hoodie__compact__inline__max__delta__seconds=3600,
    )
    assert isinstance(draft(context, COMPACTION, PlanRequest(honour_trigger=True)), Refusal)
    world.clock.advance(3_600_000)
    assert isinstance(draft(context, COMPACTION, PlanRequest(honour_trigger=True)), Draft)
