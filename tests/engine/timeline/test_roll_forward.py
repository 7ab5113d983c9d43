"""Rolling forward: a committed instant gets published, once, whatever happened before."""

from contextlib import suppress

import pytest

from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.kernel.errors import CorruptTable, Defect, Unsettled
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.testing.fault_plan import (
    Fault,
    FaultKind,
    FaultPlan,
    StorageCall,
    crash_plans,
)
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.writer import archive
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, layout_of
from lakewarden.engine.timeline.ledger.entries import Claim, Committed
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.timeline.roll_forward import RolledForward, roll_forward
from lakewarden.engine.timeline.timeline import Timeline

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)
CLAIM = Claim(
    instant="20",
    action=Action.COMPACTION,
    attempt=1,
    owner="me",
    host="h",
    process="7",
    engine_version="0.1",
    started_at_ms=5,
)
COMMITTED = Committed(
    instant="20",
    action=Action.COMPACTION,
    attempt=1,
    owner="me",
    at_ms=6,
    completion_time="25",
    content=b"metadata",
)
LEDGER = Ledger("20", (CLAIM, COMMITTED))
COMPLETED = Instant("20", Action.COMMIT, State.COMPLETED, "25")
PENDING = ("20.compaction.requested", "20.compaction.inflight")


def storage_with(*names: str) -> MemoryStorage:
    storage = fresh_memory_storage()
    for name in names:
        storage.put(f"{LAYOUT.folder}/{name}", b"x")
    return storage


def rolled(storage: MemoryStorage, ledger: Ledger = LEDGER) -> RolledForward:
    return roll_forward(storage, Timeline.load(storage, LAYOUT), ledger)


def test_a_committed_instant_is_published_with_the_content_of_its_entry() -> None:
    storage = storage_with(*PENDING)
    assert rolled(storage) == RolledForward(COMPLETED, is_new=True)
    assert storage.read(f"{LAYOUT.folder}/20_25.commit") == b"metadata"


def test_rolling_forward_again_changes_nothing() -> None:
    storage = storage_with(*PENDING)
    stale = Timeline.load(storage, LAYOUT)
    rolled(storage)
    before = storage.walk("")
    assert rolled(storage) == RolledForward(COMPLETED, is_new=False)
    assert roll_forward(storage, stale, LEDGER).instant == COMPLETED
    assert storage.walk("") == before


def test_an_instant_that_java_completed_meanwhile_is_not_completed_twice() -> None:
    storage = storage_with(*PENDING, "20_29.commit")
    by_java = Instant("20", Action.COMMIT, State.COMPLETED, "29")
    assert rolled(storage) == RolledForward(by_java, is_new=False)
    assert storage.stat(f"{LAYOUT.folder}/20_25.commit") is None


def test_an_archived_instant_is_not_published_again() -> None:
    storage = storage_with("30_31.commit")
    archive(storage, LAYOUT.history_folder, [ArchivedInstant(COMPLETED, b"metadata")])
    assert rolled(storage) == RolledForward(COMPLETED, is_new=False)


def test_a_committed_instant_without_any_trace_is_reported() -> None:
    with pytest.raises(CorruptTable) as raised:
        rolled(storage_with("30_31.commit"))
    assert raised.value.code == "committed_instant_vanished"


def test_another_content_under_the_same_name_is_reported() -> None:
    storage = storage_with(*PENDING)
    stale = Timeline.load(storage, LAYOUT)
    storage.put(f"{LAYOUT.folder}/20_25.commit", b"other")
    # Seen or not seen before it was to be published.
    for timeline in (stale, Timeline.load(storage, LAYOUT)):
        with pytest.raises(CorruptTable) as raised:
            roll_forward(storage, timeline, LEDGER)
        assert raised.value.code == "contradicting_completion"
    assert storage.read(f"{LAYOUT.folder}/20_25.commit") == b"other"


def test_nothing_is_published_while_only_a_claim_stands() -> None:
    storage = storage_with(*PENDING)
    with pytest.raises(Defect) as raised:
        rolled(storage, Ledger("20", (CLAIM,)))
    assert raised.value.law == 2


def crashed(plan: FaultPlan) -> MemoryStorage:
    storage = storage_with(*PENDING)
    faulty = FaultyStorage(storage, plan)
    with suppress(Crashed):
        roll_forward(faulty, Timeline.load(faulty, LAYOUT), LEDGER)
    return storage


def calls_of_rolling_forward() -> tuple[StorageCall, ...]:
    storage = FaultyStorage(storage_with(*PENDING))
    roll_forward(storage, Timeline.load(storage, LAYOUT), LEDGER)
    return storage.calls


@pytest.mark.parametrize("plan", list(crash_plans(calls_of_rolling_forward())), ids=str)
def test_after_any_crash_the_instant_is_published_whole(plan: FaultPlan) -> None:
    storage = crashed(plan)
    assert rolled(storage).instant == COMPLETED
    assert storage.read(f"{LAYOUT.folder}/20_25.commit") == b"metadata"


@pytest.mark.parametrize("kind", [FaultKind.LOST_REQUEST, FaultKind.LOST_ANSWER])
def test_an_unknown_outcome_is_unsettled_and_mended_later(kind: FaultKind) -> None:
    storage = storage_with(*PENDING)
    timeline = Timeline.load(storage, LAYOUT)
    faulty = FaultyStorage(storage, FaultPlan((Fault(1, kind),)))
    with pytest.raises(Unsettled):
        roll_forward(faulty, timeline, LEDGER)
    assert rolled(storage).instant == COMPLETED
