"""Announcements: what the inflight file of a write says of the file groups it is about to touch."""

import pytest

from lakewarden.engine.conflicts.touched_groups import Touched, announced_by
from lakewarden.engine.write import operations
from lakewarden.engine.write.request import WriteRequest
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.writing.model import Write
from tests.writing.shapes import Shape


def announced(world: ServiceWorld, request: WriteRequest) -> Touched:
    """What a write has announced; its inflight file stays beside the completed one."""
    instant = TableWriter(world.context()).write(request).instant
    active = world.snapshot().timeline.active
    return announced_by(active, active.with_time(instant)[0]).touched


@pytest.mark.parametrize("shape", [COW, MOR], ids=str)
def test_an_upsert_announces_the_groups_of_its_keys_and_whether_they_get_logs(shape: Shape) -> None:
    world = new_service_world(shape, inserted())
    groups = {slice_.key for slice_ in world.slices() if slice_.partition == "p=a"}
    rows = Write("upsert", (row("k0", 5), row("k2", 5)))
    found = announced(world, operations.upsert(rows.table()))
    assert found.keys == groups
    assert found.appended == (groups if shape is MOR else frozenset())


def test_a_new_file_group_is_not_announced() -> None:
    world = new_service_world(COW)
    assert announced(world, operations.upsert(inserted().table())).keys == frozenset()


def test_an_overwrite_announces_what_it_replaces() -> None:
    world = new_service_world(COW, inserted())
    groups = {slice_.key for slice_ in world.slices()}
    assert announced(world, operations.overwrite(updated().table())).keys == groups
