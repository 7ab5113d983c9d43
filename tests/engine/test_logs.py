"""The logger `lakewarden` says what is tried again, what is settled, and what gave way.

That who waits for a lock is said is tested with the locks.
"""

import logging
from collections.abc import Iterator

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.events import Event, log_event
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.testing.fault_plan import parse_plan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.crash.dying_operations import DEAD_AFTER_MS, ports
from tests.engine.services.service_table import MOR, inserted, new_service_world, updated
from tests.writing.rivals import OnceFound
from tests.writing.shapes import Shape

AGAIN = {"hoodie.write.num.retries.on.conflict.failures": 1}
ROW = {"id": "k", "p": "a", "ts": 1, "v": 1.0, "name": "n"}


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="lakewarden")


@pytest.fixture
def storage() -> MemoryStorage:
    storage = fresh_memory_storage()
    Shape("mor").create("", storage=storage).upsert([ROW])
    return storage


def said(caplog: pytest.LogCaptureFixture) -> Iterator[tuple[str, str]]:
    for record in caplog.records:
        if record.name == "lakewarden":
            yield str(vars(record)["event"]), record.getMessage()


def racing(storage: MemoryStorage, **changes: object) -> Table:
    """A writer beside which another one commits after it has found its keys."""
    rival = OnceFound(lambda: Table.on(storage).upsert([{**ROW, **changes}]))

    def hear(event: Event) -> None:
        log_event(event)
        rival(event)

    return Table.on(storage, Ports(events=hear))


def test_a_write_that_begins_again_says_why(
    storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    racing(storage, v=2.0).upsert([{**ROW, "ts": 2}], AGAIN)
    [(event, sentence)] = said(caplog)
    assert event == "write_retried"
    assert "write_conflict" in sentence
    assert "tries left: 0" in sentence


def test_a_write_that_may_not_begin_again_raises_and_logs_nothing(
    storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Conflict):
        racing(storage, v=2.0).upsert([{**ROW, "ts": 2}])
    assert not list(said(caplog))


def test_what_a_dead_writer_left_is_settled_with_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = new_service_world(MOR, inserted())
    dying = FaultyStorage(world.storage, parse_plan("40:fail_before!"))
    with pytest.raises(Crashed):
        Table.on(dying, ports(world.clock, 7)).upsert(list(updated().rows))
    pending = [one.requested for one in world.snapshot().timeline.active.pending()]
    assert len(pending) == 1
    world.clock.advance(DEAD_AFTER_MS)
    world.write(updated())
    sentence = f"The deltacommit {pending[0]} was left pending, and is rolled back now."
    assert ("recovered", sentence) in said(caplog)


def test_a_plan_that_gives_way_is_named_with_the_write(
    storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table.on(storage)
    table.upsert([{**ROW, "v": 5.0}])
    plan = table.compaction.schedule(cancellable=True)
    assert plan is not None
    write = table.overwrite([{**ROW, "v": 6.0}])
    assert ("plan_gave_way", f"The plan {plan.instant} gave way to {write.instant}.") in said(
        caplog
    )
