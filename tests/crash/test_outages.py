"""Outages: a place that stops taking writes, or stops answering, in the middle of an operation.

The operation ends with an error that says so, a reader sees the table as it was (or as the write
made it, where that had been committed), and the next write works as if nothing had been.
"""

from collections.abc import Callable, Iterable

import pytest

from lakewarden.engine.kernel.errors import Conflict, LakewardenError, Unavailable, Unsettled
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan, StorageCall
from lakewarden.engine.testing.faults import FaultyStorage
from tests.crash.crash_cases import HISTORY, NEXT, contents, row
from tests.crash.dying_operations import DEAD_AFTER_MS, CrashedTable, new_world
from tests.sampling import sample
from tests.writing.model import Write
from tests.writing.shapes import Shape, carry_out

SHAPES = (Shape("cow", index="SIMPLE"), Shape("mor", index="RECORD_INDEX"))
CHANGE = Write("upsert", (row("k1", "b", 5), row("k7", "c", 5)))
WRITING = frozenset({"put", "create", "close", "create_exclusive", "replace_if", "touch"})
# One in so many affected calls is where an outage begins.
EVERY = 7


def is_any(call: StorageCall) -> bool:
    """No credentials any more: nothing works."""
    return True


def is_writing(call: StorageCall) -> bool:
    """No space any more, or a place that has become read-only."""
    return call.operation in WRITING


def calls_of(before: CrashedTable) -> tuple[StorageCall, ...]:
    """The calls of an undisturbed run, and as many again for what is done about an outage."""
    rehearsal = before.copy()
    stage = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    carry_out(rehearsal.table(50, stage), CHANGE)
    return stage.calls


def outages(before: CrashedTable, affects: Callable[[StorageCall], bool]) -> Iterable[FaultPlan]:
    """Plans by which every affected call fails from some call on."""
    calls = calls_of(before)
    for start in sample([call.number for call in calls if affects(call)], EVERY):
        yield FaultPlan(
            tuple(
                Fault(number, FaultKind.FAIL_BEFORE)
                for number in range(start, 3 * len(calls))
                if number > len(calls) or affects(calls[number - 1])
            )
        )


@pytest.mark.parametrize("affects", [is_any, is_writing])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_outage_is_an_error_and_nothing_else(
    shape: Shape, affects: Callable[[StorageCall], bool]
) -> None:
    before = new_world(shape, HISTORY)
    old, new = contents(shape, *HISTORY), contents(shape, *HISTORY, CHANGE)
    for plan in outages(before, affects):
        world = before.copy()
        stage = FaultyStorage(world.storage, plan, world.clock)
        error = error_of(lambda stage=stage, world=world: carry_out(world.table(50, stage), CHANGE))
        found = world.rows()
        first = plan.faults[0]
        assert found in (old, new), f"{first}: neither old nor new"
        assert world.rows(use_metadata=False) == found, f"{first}: listings differ"
        world.clock.advance(DEAD_AFTER_MS)
        carry_out(world.table(60), NEXT)
        after = world.rows()
        with_change = contents(shape, *HISTORY, CHANGE, NEXT)
        # What had been acknowledged, or seen, is there, even if the next write had to publish it.
        is_settled = error is None or found == new
        expected = [with_change] if is_settled else [contents(shape, *HISTORY, NEXT), with_change]
        assert after in expected, f"{first}: after the repair"
        assert not world.table(61).timeline().pending()


def error_of(operation: Callable[[], object]) -> LakewardenError | None:
    """The error of an operation; one that a caller can act upon."""
    try:
        operation()
    except (Unavailable, Unsettled, Conflict) as error:
        return error
    return None
