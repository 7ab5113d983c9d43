"""Calls beside a rollback: done, or to be tried again, and never a table that seems damaged."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from lakewarden import Conflict, InvalidRequest, Table, Unsettled
from lakewarden.engine.transaction.rollback_request import rollback
from tests.crash.dying_operations import ports
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.writing.shapes import Shape

# Every so many calls are tried; neighbours look at the same.
STEP = 2
CALLS: dict[str, Callable[[Table], object]] = {
    "clean": lambda table: table.clean(commits_retained=1),
    "clean, dry run": lambda table: table.clean(commits_retained=1, dry_run=True),
    "upsert": lambda table: table.upsert([row("k0", 9)]),
    "truncate": lambda table: table.truncate(),
    "drop partitions": lambda table: table.drop_partitions(["p=b"]),
    "deduplicate": lambda table: table.repair_deduplicate(dry_run=True),
    "column statistics": lambda table: table.column_statistics(),
    "column overlaps": lambda table: table.column_overlaps(),
    "compared files": lambda table: table.compared_files(),
    "explain": lambda table: table.explain(filter="v > 1"),
    "refreshed index": lambda table: table.refresh_index("column_stats"),
    "clustering": lambda table: table.clustering.schedule(),
}


@pytest.mark.parametrize(
    ("name", "shape"), [*((one, MOR) for one in CALLS), ("explain", COW)], ids=str
)
def test_a_call_never_takes_a_rollback_for_damage(name: str, shape: Shape) -> None:
    at, is_over = 1, False
    while not is_over:
        world = new_service_world(shape, inserted(4), updated(4), updated(4, 3))
        newest = max(one.requested for one in world.snapshot().timeline.active.completed())
        hook = Hook(at, partial(rolled_back, world, newest))
        with suppress(Conflict, Unsettled):
            CALLS[name](Table.on(hook.storage(world.storage), ports(world.clock, 77)))
        at, is_over = at + STEP, not hook.has_happened
    assert at > 2 * STEP


def rolled_back(world: ServiceWorld, instant: str) -> None:
    """Roll a write back, unless the lock is held, or something already builds on the write."""
    with suppress(Conflict, InvalidRequest):
        rollback(world.context(51, hoodie__write__lock__wait_time_ms=0), instant)
