"""Crashes: killed at any storage call, an operation leaves the table exactly old or exactly new.

Each operation runs once without faults, and again for every way to die at one of its calls. Then a
fresh writer settles what is left, and everything late is swept.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage.side_by_side import IN_TURN, Concurrency
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    LastFirst,
    TransactionTable,
    Writer,
)

PLAN = compaction.encode_plan(
    compaction.CompactionPlan(
        operations=(
            compaction.CompactionOperation(
                base_instant_time="1", file_id="f1", partition_path="p=a"
            ),
        )
    )
)


@dataclass(frozen=True)
class Operation:
    """What is there before, and what is tried upon it."""

    prepare: Callable[[TransactionTable], str]
    run: Callable[[Writer, str], object]
    concurrency: Concurrency = IN_TURN


def one_write(world: TransactionTable) -> str:
    return world.writer().write("f1").instant


def two_writes(world: TransactionTable) -> str:
    one_write(world)
    return world.writer().write("f1", "f2").instant


def a_dead_write(world: TransactionTable) -> str:
    one_write(world)
    dead = world.writer()
    attempt = dead.begin()
    dead.write_file(attempt, "f1")
    dead.write_file(attempt, "f9", partition="p=new")
    world.clock.advance(DEAD_AFTER_MS)
    return attempt.instant


def a_plan(world: TransactionTable) -> str:
    one_write(world)
    return publish(world.writer().context, Action.COMPACTION, PLAN, claims=False).instant


def a_late_file(world: TransactionTable) -> str:
    """What one who was taken for dead has written after his write was taken back."""
    one_write(world)
    slow = world.writer()
    attempt = slow.begin()
    slow.write_file(attempt, "f2")
    world.clock.advance(DEAD_AFTER_MS)
    cancel(world.writer().context, attempt.instant, "dead")
    slow.write_file(attempt, "f3", partition="p=late")
    world.clock.advance(SWEPT_AFTER_MS)
    return attempt.instant


OPERATIONS = {
    "write": Operation(one_write, lambda writer, _: writer.write("f1", "f2")),
    "write side by side": Operation(
        one_write, lambda writer, _: writer.write("f1", "f2"), LastFirst()
    ),
    "publish": Operation(one_write, lambda writer, _: writer.begin()),
    "plan": Operation(
        one_write,
        lambda writer, _: publish(writer.context, Action.COMPACTION, PLAN, claims=False),
    ),
    "settle": Operation(a_dead_write, lambda writer, _: recover_failed_instants(writer.context)),
    "rollback": Operation(two_writes, lambda writer, newest: rollback(writer.context, newest)),
    "cancel": Operation(
        a_plan, lambda writer, plan: cancel(writer.context, plan, "in the way", force=True)
    ),
    "sweep": Operation(a_late_file, lambda writer, _: sweep(writer.context)),
}


def calm_run(operation: Operation) -> tuple[frozenset[str], frozenset[str], FaultyStorage]:
    """What is visible before and after a run without faults, by file group; and its calls."""
    world = TransactionTable()
    subject = operation.prepare(world)
    old = groups(world)
    writer = world.writer(FaultPlan(), concurrency=operation.concurrency)
    operation.run(writer, subject)
    assert isinstance(writer.storage, FaultyStorage)
    return old, groups(world), writer.storage


def groups(world: TransactionTable) -> frozenset[str]:
    """What a reader sees; the instants in names differ from run to run, so their ranks stand."""
    instants = sorted({path.rpartition("_")[2] for path in world.committed_files()})
    return frozenset(
        f"{path.partition('_')[0]} of {instants.index(path.rpartition('_')[2])}"
        for path in world.visible()
    )


def all_crashes() -> Iterator[tuple[str, FaultPlan]]:
    for name, operation in OPERATIONS.items():
        for plan in crash_plans(calm_run(operation)[2].calls):
            yield name, plan


@pytest.mark.parametrize(("name", "plan"), list(all_crashes()), ids=str)
def test_after_any_crash_the_table_is_exactly_old_or_exactly_new(
    name: str, plan: FaultPlan
) -> None:
    operation = OPERATIONS[name]
    old, new, _ = calm_run(operation)
    world = TransactionTable()
    subject = operation.prepare(world)
    with suppress(Crashed):
        operation.run(world.writer(plan, concurrency=operation.concurrency), subject)
    # A completed file that was cut short is refused by readers until it is mended.
    with suppress(CorruptTable):
        assert groups(world) in (old, new)
    world.clock.advance(DEAD_AFTER_MS)
    recovered = world.writer().context
    recover_failed_instants(recovered)
    assert groups(world) in (old, new)
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(recovered)
    assert_at_rest(world)


def assert_at_rest(world: TransactionTable) -> None:
    """Nothing is left that is neither committed nor a plan, and the next write works."""
    assert world.data_files() == world.committed_files()
    pending = {instant.action for instant in world.timeline().pending()}
    assert pending <= {Action.COMPACTION}
    assert recover_failed_instants(world.writer().context) == ()
    rolled_back = [i for i in world.timeline().instants if i.action is Action.ROLLBACK]
    assert len(rolled_back) <= 1
    world.writer().write("f3")
    assert any(path.startswith("p=a/f3_") for path in world.visible())
