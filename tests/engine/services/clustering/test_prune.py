"""Pruning a plan that waits: what is skipped, what takes its place, and when it is refused."""

import pytest

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.clustering.prune import Pruned, prune
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.start import start
from tests.engine.services.service_table import COW, ServiceWorld, new_service_world, row
from tests.writing.model import Write


def world_of() -> ServiceWorld:
    """A table with three small files in each of two partitions."""
    return new_service_world(
        COW,
        *(
            Write("bulk_insert", tuple(row(f"k{10 * n + i}", 1, "ab"[i % 2]) for i in range(4)))
            for n in range(3)
        ),
    )


def planned(world: ServiceWorld, *, cancellable: bool = True) -> str:
    done = schedule(world.context(50), CLUSTERING, PlanRequest(cancellable=cancellable))
    assert isinstance(done, Scheduled), done
    world.clock.advance(1000)
    return done.instant


def damaged(world: ServiceWorld) -> FileSlice:
    """A file that is no Parquet file any more."""
    slice_ = world.slices()[0]
    assert slice_.base_file is not None
    world.storage.put(slice_.path(slice_.base_file), b"rotten")
    return slice_


def pruned(world: ServiceWorld, instant: str, *names: str, **plan_request: bool) -> Pruned:
    return prune(world.context(51), instant, names or None, **plan_request)


def pending(world: ServiceWorld) -> list[str]:
    return [one.requested for one in world.table(96).timeline().pending((Action.CLUSTERING,))]


@pytest.mark.parametrize("cancellable", [True, False])
def test_what_cannot_be_read_is_left_out_and_the_rest_is_clustered(cancellable: bool) -> None:
    world = world_of()
    instant, broken = planned(world, cancellable=cancellable), damaged(world)
    before = {slice_.key for slice_ in world.slices()}
    done = pruned(world, instant)
    (file,) = done.files
    assert broken.base_file is not None
    assert file.path.endswith(broken.base_file.name)
    assert file.broken
    assert done.replaced_by is not None
    assert pending(world) == [done.replaced_by]
    assert world.table(96).clustering.plan(done.replaced_by).cancellable is cancellable
    assert read_ledger(world.storage, instant).ends_in is LedgerEnd.CANCELLED
    world.clock.advance(1000)
    execute(world.context(52), CLUSTERING, done.replaced_by)
    after = {slice_.key for slice_ in world.slices()}
    assert before & after == {broken.key}


def test_its_partition_comes_back_in_the_next_plan() -> None:
    world = world_of()
    instant, broken = planned(world), damaged(world)
    done = pruned(world, instant)
    assert done.replaced_by is not None
    assert broken.partition in world.table(96).clustering.plan(done.replaced_by).missing_partitions


def test_files_that_are_named_are_left_out_and_strangers_are_told() -> None:
    world = world_of()
    instant, chosen = planned(world), world.slices()[0]
    assert chosen.base_file is not None
    done = pruned(world, instant, chosen.base_file.name, "no_such.parquet")
    assert [file.is_planned for file in done.files] == [True, False]
    assert done.replaced_by is not None
    assert chosen.key not in world.table(96).clustering.plan(done.replaced_by).groups


def test_a_dry_run_changes_nothing_and_neither_does_a_plan_without_fault() -> None:
    world = world_of()
    instant = planned(world)
    assert pruned(world, instant).files == ()
    damaged(world)
    (file,) = pruned(world, instant, dry_run=True).files
    assert file.is_planned
    assert pending(world) == [instant]


def test_an_empty_plan_has_to_be_meant() -> None:
    world = world_of()
    instant = planned(world)
    names = [slice_.base_file.name for slice_ in world.slices() if slice_.base_file]
    with pytest.raises(InvalidRequest, match="The clustering"):
        pruned(world, instant, *names)
    assert pending(world) == [instant]
    assert pruned(world, instant, *names, allow_empty=True).replaced_by is None
    assert pending(world) == []


def test_a_plan_that_was_begun_with_is_left_alone() -> None:
    world = world_of()
    instant = planned(world)
    damaged(world)
    attempt = start(world.context(53), instant).attempt
    assert attempt is not None
    with attempt, pytest.raises(Conflict, match="already started"):
        pruned(world, instant)
    with pytest.raises(InvalidRequest, match="no pending clustering"):
        pruned(world, "20200101000000000")


def test_a_plan_that_does_not_know_of_a_write_is_not_made_anew() -> None:
    """As Java's writers may leave one, if they are set to go on in spite of plans."""
    world = world_of()
    instant = planned(world)
    active = world.table(96).timeline()
    (waiting,) = active.pending((Action.CLUSTERING,))
    path, content = active.path(waiting), active.read(waiting)
    world.storage.delete(path)
    world.write(Write("upsert", (row("k0", 2, "a"),)))
    world.storage.put(path, content)
    other = next(one for one in world.slices() if one.partition.endswith("b"))
    assert other.base_file is not None
    with pytest.raises(Conflict, match="lacks its rows"):
        pruned(world, instant, other.base_file.name)
    assert pending(world) == [instant]
