"""Crashes of a rollback on a table of Java with a metadata table: both say the same afterwards."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.table.config import METADATA_FOLDER, load_config
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.transaction.fake_locks import LosesItself
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    LastFirst,
    TransactionTable,
    Writer,
)
from tests.golden_tables import GoldenTable

# Later than all golden tables.
NOW_MS = 1_830_000_000_000
TABLE = "cow_rollback_of_failed_write"


class GoldenWorld(TransactionTable):
    """A table of Java in memory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(clock=ManualClock(NOW_MS))
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.storage.put(path.relative_to(folder).as_posix(), path.read_bytes())

    def newest(self) -> str:
        return self.timeline().completed()[-1].requested

    def slices(self, *, use_metadata: bool) -> tuple[FileSlice, ...]:
        state = load_snapshot(self.storage)
        groups = state.file_groups(state.visibility(), None, use_metadata=use_metadata)
        return tuple(group.latest_merged() for group in groups)


def takes_back(own: Writer, instant: str) -> object:
    return rollback(own.context, instant)


def settles(own: Writer, instant: str) -> object:
    return recover_failed_instants(own.context)


def completed(world: GoldenWorld) -> str:
    return world.newest()


def unpublished(world: GoldenWorld) -> str:
    """The write has told the metadata table, and died before it completed."""
    newest = world.timeline().completed()[-1]
    world.storage.delete(world.timeline().path(newest))
    world.clock.advance(DEAD_AFTER_MS)
    return newest.requested


Case = tuple[Callable[[GoldenWorld], str], Callable[[Writer, str], object]]
CASES: dict[str, Case] = {
    "rollback of a completed write": (completed, takes_back),
    "rollback of a failed write": (unpublished, settles),
}


def crashes(folder: Path, case: Case) -> Iterator[FaultPlan]:
    prepare, run = case
    world = GoldenWorld(folder)
    instant = prepare(world)
    own = world.writer(FaultPlan())
    run(own, instant)
    assert isinstance(own.storage, FaultyStorage)
    yield from crash_plans(own.storage.calls)


def test_who_has_lost_the_lock_tells_the_metadata_table_nothing(golden: GoldenTable) -> None:
    world = GoldenWorld(golden(TABLE))
    own = world.writer()
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    before = world.storage.walk(METADATA_FOLDER)
    losing = world.writer(lock=lambda: LosesItself(1))
    careless = Writer(replace(own.context, lock=losing.context.lock))
    with pytest.raises(Conflict) as raised:
        careless.commit(attempt, stat)
    assert raised.value.code == "lock_lost"
    assert world.storage.walk(METADATA_FOLDER) == before


@pytest.mark.parametrize("question", [1, 2])
def test_who_loses_the_lock_side_by_side_does_not_commit(
    golden: GoldenTable, question: int
) -> None:
    world = GoldenWorld(golden(TABLE))
    seen = world.timeline().completed()
    own = world.writer(concurrency=LastFirst())
    attempt = own.begin()
    stat = own.write_file(attempt, "f1")
    losing = world.writer(lock=lambda: LosesItself(question))
    careless = Writer(replace(own.context, lock=losing.context.lock))
    with pytest.raises(Conflict) as raised:
        careless.commit(attempt, stat)
    assert raised.value.code == "lock_lost"
    assert [one for one in world.timeline().completed() if one.action.is_write] == list(seen)
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    assert not told_of(world, attempt.instant)


@pytest.mark.parametrize("name", CASES)
def test_the_metadata_table_forgets_what_is_rolled_back(golden: GoldenTable, name: str) -> None:
    prepare, run = CASES[name]
    world = GoldenWorld(golden(TABLE))
    instant = prepare(world)
    assert told_of(world, instant)
    run(world.writer(), instant)
    assert not told_of(world, instant)


def told_of(world: GoldenWorld, instant: str) -> bool:
    state = load_metadata_table(world.storage, load_config(world.storage))
    return state.deltacommit(instant) is not None


@pytest.mark.parametrize("name", CASES)
def test_after_any_crash_table_and_metadata_table_say_the_same(
    golden: GoldenTable, name: str
) -> None:
    prepare, run = CASES[name]
    old, new = GoldenWorld(golden(TABLE)), GoldenWorld(golden(TABLE))
    prepare(old)
    run(new.writer(), prepare(new))
    allowed = (old.slices(use_metadata=False), new.slices(use_metadata=False))
    for plan in crashes(golden(TABLE), CASES[name]):
        world = GoldenWorld(golden(TABLE))
        instant = prepare(world)
        with suppress(Crashed):
            run(world.writer(plan), instant)
        world.clock.advance(DEAD_AFTER_MS)
        recover_failed_instants(world.writer().context)
        assert world.slices(use_metadata=False) in allowed, plan
        assert world.slices(use_metadata=True) == world.slices(use_metadata=False), plan
        world.clock.advance(SWEPT_AFTER_MS)
        sweep(world.writer().context)
        assert world.timeline().pending() == (), plan
        assert world.data_files() == world.committed_files(), plan
