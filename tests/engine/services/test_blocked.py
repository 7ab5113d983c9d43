"""One stuck instant of each kind: whoever it holds back names it, its age and the remedy.

After the remedy they go on. The remedy is taken from the row as it is, and called.
"""

from dataclasses import dataclass

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import clean as clean_payload
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.services.archive.run import archive
from lakewarden.engine.services.clean.draft import CleanRequest, content_of, draft_clean
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.inspection.state.blockers import Blocker, blockers
from lakewarden.engine.services.inspection.state.plans import plans
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.services.retention.archive_plan import ArchiveHold
from lakewarden.engine.services.retention.settings import CleanRetention
from lakewarden.engine.table.config import load_config
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.start import start
from tests.crash.dying_operations import SWEPT_AFTER_MS
from tests.engine.services.service_table import ServiceWorld, inserted, new_service_world, updated
from tests.writing.model import Write
from tests.writing.shapes import Shape

MOR = Shape("mor", has_metadata=False)
KEEP = {
    "hoodie__clean__commits__retained": "1",
    "hoodie__compact__inline__max__delta__commits": "1",
    "hoodie__keep__max__commits": "3",
    "hoodie__keep__min__commits": "2",
    "hoodie__log__compaction__blocks__threshold": "2",
}
OPTIONS = {name.replace("__", "."): value for name, value in KEEP.items()}
WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True)
class Stuck:
    """A plan that nobody carries out, of a service, cancellable or not, and how far it has come."""

    service: TableService
    is_cancellable: bool
    is_started: bool

    def __str__(self) -> str:
        words = (
            self.service.service.value,
            "cancellable" if self.is_cancellable else "immutable",
            "abandoned" if self.is_started else "requested",
        )
        return "-".join(words)

    def make(self, world: ServiceWorld) -> str:
        answer = schedule(
            world.context(40, **KEEP), self.service, PlanRequest(cancellable=self.is_cancellable)
        )
        assert isinstance(answer, Scheduled), answer
        if self.is_started:
            start(world.context(41), answer.instant)
        return answer.instant


STUCK = (
    Stuck(COMPACTION, is_cancellable=False, is_started=False),
    Stuck(COMPACTION, is_cancellable=True, is_started=True),
    Stuck(LOG_COMPACTION, is_cancellable=True, is_started=False),
    Stuck(LOG_COMPACTION, is_cancellable=False, is_started=True),
    Stuck(CLUSTERING, is_cancellable=True, is_started=False),
    Stuck(CLUSTERING, is_cancellable=False, is_started=True),
)


def found(world: ServiceWorld, instant: str) -> dict[str, Blocker]:
    rows = blockers(world.context(60, **KEEP))
    return {row.blocked_service: row for row in rows if row.instant == instant}


def apply(world: ServiceWorld, remedy: str) -> None:
    """Do what a row says, to the letter."""
    table = Table.on(world.storage, world.context(70).ports)
    eval(remedy, {"table": table})


def with_later_writes(world: ServiceWorld) -> None:
    """Writes to other partitions, which conflict with nothing, for which clean and archive wait."""
    world.write(*(updated(3, ts=at, partitions="c") for at in range(20, 26)))


@pytest.mark.parametrize("stuck", STUCK, ids=str)
def test_a_stuck_plan_is_named_by_clean_and_archive_and_they_go_on_after_the_remedy(
    stuck: Stuck,
) -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2), updated(ts=3))
    instant = stuck.make(world)
    with_later_writes(world)
    world.clock.advance(WEEK_MS)
    rows = found(world, instant)
    assert set(rows) == {"clean", "archive"}
    for row in rows.values():
        assert row.age_seconds is not None
        assert row.age_seconds > WEEK_MS / 1000
        assert row.remedy_sql.startswith("CALL ")
        assert instant in row.remedy_sql
    held = archive(world.context(61, **KEEP))
    assert held.held is not None
    assert (held.held.hold, held.held.instant) == (ArchiveHold.PENDING, instant)
    assert "It started 7 days ago" in held.held.why
    (plan,) = plans(world.context(62, **KEEP))
    assert set(plan.blocks) == {"clean", "archive"}
    before = clean(world.context(63, **KEEP), dry_run=True)
    assert before.held_by == instant
    rows_before = world.rows()
    apply(world, rows["clean"].remedy_python)
    assert_only_late_files_are_waited_for(world, instant)
    assert world.rows() == rows_before
    world.write(updated(3, ts=30, partitions="c"))
    expected = world.rows()
    after = clean(world.context(64, **KEEP))
    assert after.held_by != instant
    assert after.earliest_retained is not None
    assert after.earliest_retained > instant
    assert not found(world, instant)
    done = archive(world.context(65, **KEEP))
    assert any(one.requested > instant for one in done.instants)
    assert world.rows() == expected


def assert_only_late_files_are_waited_for(world: ServiceWorld, instant: str) -> None:
    """What was started may be paused and leave files yet; for an hour an archival waits for it."""
    rows = found(world, instant)
    assert [row.action for row in rows.values()] in ([], [ArchiveHold.SWEEP])
    world.clock.advance(SWEPT_AFTER_MS)


def test_a_dead_write_is_named_and_rolled_back_by_the_remedy() -> None:
    world = new_service_world(MOR, inserted(), updated(ts=2))
    attempt = publish(world.context(50), Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    to_inflight(world.context(50), attempt)
    lazy = {**KEEP, "hoodie__clean__failed__writes__policy": "NEVER"}
    world.clock.advance(WEEK_MS)
    for seed in range(6):
        table = Table.on(world.storage, world.context(80 + seed, **lazy).ports)
        table.upsert(
            updated(3, ts=30 + seed, partitions="c").table(),
            {"hoodie.clean.failed.writes.policy": "NEVER"},
        )
        world.clock.advance(1000)
    rows = found(world, attempt.instant)
    assert set(rows) == {"clean", "archive"}
    assert rows["archive"].state == "inflight, abandoned"
    assert rows["archive"].owner is not None
    apply(world, rows["archive"].remedy_python)
    assert_only_late_files_are_waited_for(world, attempt.instant)
    apply(world, "table.sweep()")
    assert not found(world, attempt.instant)
    assert archive(world.context(63, **KEEP))


def test_a_clean_that_somebody_left_is_named_and_carried_out_by_the_remedy() -> None:
    world = new_service_world(Shape("cow", has_metadata=False), inserted(), *later(2, 6))
    context = world.context(40, **KEEP)
    drafted = draft_clean(context, world.snapshot(), CleanRetention(commits=1), CleanRequest())
    content = clean_payload.encode_plan(content_of(world.storage, drafted))
    left = publish(context, Action.CLEAN, content, claims=True).instant
    world.clock.advance(WEEK_MS)
    (row,) = found(world, left).values()
    assert (row.blocked_service, row.action, row.remedy_python) == (
        "clean",
        "clean",
        "table.clean()",
    )
    assert row.age_seconds == WEEK_MS / 1000
    (plan,) = plans(world.context(61, **KEEP))
    assert (plan.service, plan.blocks, plan.partitions_count) == ("clean", ("clean",), 2)
    apply(world, row.remedy_python)
    assert not found(world, left)
    assert archive(world.context(62, **KEEP))


def later(first: int, last: int) -> list[Write]:
    return [updated(ts=at) for at in range(first, last)]


def test_a_rollback_that_somebody_left_is_named_and_carried_out_by_the_remedy() -> None:
    world = new_service_world(Shape("cow", has_metadata=False), inserted(), *later(2, 7))
    target = world.table(40).timeline().completed()[-1].requested
    rehearsal = world.copy()
    faulty = FaultyStorage(rehearsal.storage, FaultPlan(), rehearsal.clock)
    rehearsal.table(41, faulty).rollback(target)
    (call,) = [one for one in faulty.calls if one.path.endswith(".rollback.requested")][:1]
    plan = FaultPlan((Fault(call.number, FaultKind.FAIL_AFTER, is_fatal=True),))
    with pytest.raises(Crashed):
        world.table(41, FaultyStorage(world.storage, plan, world.clock)).rollback(target)
    world.clock.advance(WEEK_MS)
    (pending,) = plans(world.context(61, **KEEP))
    assert (pending.service, pending.cancellable) == ("rollback", False)
    assert archive(world.context(62, **KEEP)).oldest_kept is not None
    assert target not in {one.requested for one in archive(world.context(63, **KEEP)).instants}
    apply(world, "table.rollback_failed_writes()")
    assert plans(world.context(64, **KEEP)) == ()
    assert target not in {one.requested for one in world.table(65).timeline().instants}


def test_a_savepoint_is_named_and_deleted_by_the_remedy() -> None:
    world = new_service_world(Shape("cow", has_metadata=False), inserted(), updated(ts=2))
    savepoint = Table.on(world.storage, world.context(40).ports).savepoint()
    world.write(*(updated(ts=at) for at in range(3, 9)))
    rows = found(world, savepoint.instant)
    assert set(rows) == {"clean", "archive"}
    apply(world, rows["archive"].remedy_python)
    assert not found(world, savepoint.instant)
    assert clean(world.context(62, **KEEP)).held_by is None
    assert archive(world.context(63, **KEEP))


def test_replaced_files_are_named_and_a_clean_is_the_remedy() -> None:
    world = new_service_world(Shape("cow", has_metadata=False), inserted())
    table = Table.on(world.storage, world.context(40).ports)
    table.overwrite_partitions(updated(ts=2).table())
    replaced = world.table(41).timeline().completed()[-1].requested
    world.write(*(updated(ts=at) for at in range(3, 9)))
    (row,) = (found(world, replaced)[name] for name in ("archive",))
    assert row.action == ArchiveHold.UNCLEANED
    assert row.remedy_python == "table.clean()"
    table.clean(
        options={
            name: value for name, value in OPTIONS.items() if "clean" in name or "keep" in name
        }
    )
    assert not found(world, replaced)
    assert archive(world.context(63, **KEEP))


def test_what_is_uncertain_in_the_metadata_table_is_named_and_the_remedy_settles_it() -> None:
    world = new_service_world(Shape("cow"), inserted(), updated(ts=2))
    newest = world.table(40).timeline().completed()[-1]
    active = world.table(41).timeline()
    # As if its writer had died between the two tables.
    world.storage.delete(active.path(newest))
    for entry in world.storage.walk(f".hoodie/.lakewarden/ledger/{newest.requested}"):
        if entry.name != "000001.json":
            world.storage.delete(entry.path)
    world.clock.advance(WEEK_MS)
    state = load_metadata_table(world.storage, load_config(world.storage))
    assert state.uncertain() == (newest.requested,)
    row = found(world, newest.requested)["metadata_compaction"]
    assert row.age_seconds is not None
    assert row.age_seconds > WEEK_MS / 1000
    apply(world, row.remedy_python)
    state = load_metadata_table(world.storage, load_config(world.storage))
    assert state.uncertain() == ()
    assert not found(world, newest.requested)


def test_settings_that_contradict_each_other_are_a_row_not_an_error() -> None:
    world = new_service_world(MOR, inserted())
    rows = blockers(world.context(60, hoodie__keep__min__commits="5"))
    assert {(row.blocked_service, row.state) for row in rows} == {
        ("clean", "wrong_retention"),
        ("archive", "wrong_retention"),
    }


def test_a_table_at_rest_blocks_nothing() -> None:
    world = new_service_world(Shape("cow", has_metadata=False), inserted(), updated(ts=2))
    assert blockers(world.context(60)) == ()
