"""Restoring: rows, files, metadata table and ledgers are what they were, or it is refused."""

import pytest

from lakewarden.engine.formats.instant_metadata import restore as payload
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.services.archive.run import archive
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import delete_savepoint, savepoint
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from tests.crash.dying_operations import SWEPT_AFTER_MS
from tests.engine.services.restore.restored_tables import folded_files
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    contents,
    inserted,
    new_service_world,
    row,
    updated,
)
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS
from tests.writing.model import Write
from tests.writing.shapes import Shape

HISTORY = (inserted(4), updated(2))
LATER = (
    updated(4, ts=3),
    Write("upsert", (row("new", 4, "c"),)),
    Write("delete", (row("k1", 9, "b"),)),
)
INDEXED = Shape("mor", index="RECORD_INDEX")
LISTING = Shape("cow", has_metadata=False)


def newest(world: ServiceWorld) -> str:
    return world.table(97).timeline().completed()[-1].requested


def planned(world: ServiceWorld, service: TableService, seed: int) -> str:
    done = schedule(world.context(seed), service, PlanRequest())
    assert isinstance(done, Scheduled)
    world.clock.advance(1000)
    return done.instant


def assert_back(world: ServiceWorld, shape: Shape, history: tuple[Write, ...] = HISTORY) -> None:
    """The rows are those of then, for each way to find them, and the next write is like any."""
    then = contents(shape, *history)
    assert world.rows() == world.rows(use_metadata=False) == then
    assert world.differences_of_listings() == set()
    assert not world.table(97).timeline().pending()
    assert world.strays() == set()
    keys = [str(one["id"]) for one in then]
    assert sorted(world.table(97).lookup([*keys, "new"]).column("id").to_pylist()) == sorted(keys)
    world.write(updated(4, ts=20))
    assert world.rows() == contents(shape, *history, updated(4, ts=20))
    assert world.rows() == world.rows(use_metadata=False)


@pytest.mark.parametrize("shape", [COW, MOR, INDEXED, LISTING], ids=str)
def test_the_table_is_what_it_was(shape: Shape) -> None:
    world = new_service_world(shape, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    indexes = world.table(97).indexes()
    done = restore(world.context(52), to)
    assert done.to == to
    assert len(done.undone) == 3
    assert done.files_deleted > 0
    assert done.metadata_dropped == ()
    assert world.table(97).indexes() == indexes
    assert_back(world, shape)


def test_compactions_of_the_metadata_table_are_undone() -> None:
    world = new_service_world(INDEXED, *HISTORY)
    saved = savepoint(world.context(51))
    world.write(*(updated(2, ts=ts) for ts in range(3, 12)))
    indexes = world.table(97).indexes()
    assert folded_files(world)
    done = restore(world.context(52), saved.instant)
    assert done.metadata_dropped == ()
    assert world.table(97).indexes() == indexes
    assert_back(world, INDEXED)


def test_a_metadata_table_whose_folded_files_are_gone_is_made_anew() -> None:
    world = new_service_world(INDEXED, *HISTORY)
    saved = savepoint(world.context(51))
    world.write(*(updated(2, ts=ts) for ts in range(3, 12)))
    for path in folded_files(world):
        world.storage.delete(path)
    done = restore(world.context(52), saved.instant)
    assert done.metadata_dropped == ("column_stats", "partition_stats", "record_index")
    assert [one.partition for one in world.table(97).indexes()] == ["files"]
    assert_back(world, INDEXED)


def test_a_metadata_table_that_was_made_later_is_made_anew() -> None:
    """It knows the files of writes to be undone, but not from which write it has them."""
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER[:2])
    world.table(61).delete_metadata_table()
    world.table(62).create_metadata_table()
    world.write(*LATER[2:])
    done = restore(world.context(52), to)
    assert done.metadata_dropped == ("column_stats", "partition_stats")
    assert_back(world, COW)


def test_services_that_ran_later_are_taken_back_with_their_plans() -> None:
    world = new_service_world(MOR, *HISTORY)
    to = newest(world)
    execute(world.context(60), COMPACTION, planned(world, COMPACTION, 61))
    world.write(updated(4, ts=3))
    waiting = planned(world, COMPACTION, 62)
    world.write(updated(4, ts=4))
    done = restore(world.context(52), to)
    assert done.undone[0] == waiting
    assert_back(world, MOR)


def test_clustering_that_ran_later_is_taken_back() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    execute(world.context(60), CLUSTERING, planned(world, CLUSTERING, 61))
    restore(world.context(52), to)
    assert_back(world, COW)


def test_a_compaction_planned_before_stays_when_it_was_done_later() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = planned(world, COMPACTION, 61)
    world.write(updated(4, ts=3))
    to = newest(world)
    execute(world.context(60), COMPACTION, plan)
    world.write(updated(4, ts=4))
    done = restore(world.context(52), to)
    assert plan not in done.undone
    assert_back(world, MOR, (*HISTORY, updated(4, ts=3)))


def test_a_plan_from_before_goes_on_waiting() -> None:
    world = new_service_world(MOR, *HISTORY)
    plan = planned(world, COMPACTION, 61)
    world.write(updated(4, ts=3))
    to = newest(world)
    world.write(updated(4, ts=4))
    restore(world.context(52), to)
    assert [one.requested for one in world.table(97).timeline().pending()] == [plan]
    execute(world.context(60), COMPACTION, plan)
    assert_back(world, MOR, (*HISTORY, updated(4, ts=3)))


def test_the_ledgers_of_what_is_gone_have_ended() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    done = restore(world.context(52), to)
    for instant in done.undone:
        assert read_ledger(world.storage, instant).ends_in is LedgerEnd.CANCELLED
    assert done.instant is not None
    assert read_ledger(world.storage, done.instant).ends_in is LedgerEnd.COMMITTED


def test_to_the_newest_write_there_is_nothing_to_do() -> None:
    world = new_service_world(LISTING, *HISTORY)
    done = restore(world.context(52), newest(world))
    assert done.instant is None
    assert not world.table(97).timeline().completed((Action.RESTORE,))


def test_a_savepoint_can_be_come_back_to_in_any_order_with_cleans() -> None:
    world = new_service_world(COW, *HISTORY)
    saved = savepoint(world.context(51))
    world.write(*(updated(4, ts=ts) for ts in range(3, 6)))
    clean(world.context(50, hoodie__clean__commits__retained=1))
    restore(world.context(52), saved.instant)
    assert world.rows() == contents(COW, *HISTORY)
    world.write(*(updated(4, ts=ts) for ts in range(6, 9)))
    clean(world.context(53, hoodie__clean__commits__retained=1))
    assert world.rows() == world.rows(use_metadata=False)
    restore(world.context(54), saved.instant)
    assert_back(world, COW)


def archived(world: ServiceWorld, seed: int, **arguments: object) -> None:
    few = {
        "hoodie__keep__min__commits": 2,
        "hoodie__keep__max__commits": 3,
        "hoodie__clean__commits__retained": 1,
    }
    clean(world.context(seed, **few))
    assert archive(world.context(seed + 1, **few, **arguments))


def test_a_savepoint_can_be_come_back_to_whatever_is_archived() -> None:
    world = new_service_world(LISTING, inserted(2), *(updated(2, ts) for ts in range(2, 7)))
    saved = savepoint(world.context(51))
    world.write(updated(2, 7))
    archived(world, 60)
    history = (inserted(2), updated(2, 6))
    restore(world.context(52), saved.instant)
    assert world.rows() == contents(LISTING, *history)
    delete_savepoint(world.context(53), saved.instant)
    world.write(*(updated(2, ts) for ts in range(8, 13)))
    # Only then is it certain that what was taken back leaves no file any more.
    world.clock.advance(SWEPT_AFTER_MS)
    archived(world, 70)
    assert world.rows() == contents(LISTING, *history, updated(2, 12))
    assert not world.table(97).timeline().pending()


def test_behind_what_was_archived_nothing_is_come_back_to() -> None:
    world = new_service_world(LISTING, inserted(2), updated(2))
    saved = savepoint(world.context(51))
    world.write(*(updated(2, ts) for ts in range(3, 9)))
    archived(world, 60, hoodie__archive__beyond__savepoint=True)
    assert_refused(world, saved.instant, InvalidRequest, "instants_archived")


def test_what_was_cleaned_away_is_not_come_back_to() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*(updated(4, ts=ts) for ts in range(3, 6)))
    clean(world.context(50, hoodie__clean__commits__retained=1))
    before = {entry.path for entry in world.storage.walk("")}
    assert_refused(world, to, InvalidRequest, "files_cleaned")
    assert {entry.path for entry in world.storage.walk("")} == before


def test_a_savepoint_that_came_later_has_to_be_deleted_first() -> None:
    world = new_service_world(LISTING, *HISTORY)
    to = newest(world)
    world.write(LATER[0])
    saved = savepoint(world.context(51))
    assert_refused(world, to, InvalidRequest, "savepointed", saved.instant)


def test_a_savepoint_can_be_insisted_on() -> None:
    world = new_service_world(LISTING, *HISTORY)
    to = newest(world)
    world.write(LATER[0])
    with pytest.raises(InvalidRequest) as refused:
        restore(world.context(52), to, from_savepoint=True)
    assert refused.value.code == "no_savepoint"
    savepoint(world.context(51), to)
    restore(world.context(53), to, from_savepoint=True)
    assert_back(world, LISTING)


def test_a_live_writer_holds_it_off_until_it_is_dead() -> None:
    world = new_service_world(LISTING, *HISTORY)
    to = newest(world)
    attempt = publish(world.context(70), Action.COMMIT, claims=True).attempt
    assert attempt is not None
    to_inflight(world.context(70), attempt)
    assert_refused(world, to, Conflict, "instant_held", attempt.instant)
    attempt.stop()
    world.clock.advance(600_000)
    restore(world.context(52), to)
    assert_back(world, LISTING)


def assert_refused(
    world: ServiceWorld,
    to: str,
    kind: type[InvalidRequest | Conflict],
    code: str,
    instant: str | None = None,
) -> None:
    """It is refused, and a dry run tells the same without raising it."""
    with pytest.raises(kind) as refused:
        restore(world.context(52), to)
    assert refused.value.code == code
    reported = restore(world.context(53), to, dry_run=True).obstacles
    assert [one.code for one in reported] == [code]
    if instant is not None:
        assert reported[0].instant == instant


@pytest.mark.parametrize("instant", ["20990101000000000", "pending"])
def test_what_is_no_completed_write_is_refused(instant: str) -> None:
    world = new_service_world(LISTING, *HISTORY)
    if instant == "pending":
        instant = publish(world.context(50), Action.COMMIT, claims=True).instant
    with pytest.raises(InvalidRequest):
        restore(world.context(52), instant)


def restore_plan(world: ServiceWorld, to: str) -> bytes:
    """What a restore says that is published and not started."""
    undone = restore(world.context(52), to, dry_run=True).undone
    active = world.table(97).timeline()
    plan = payload.RestorePlan(
        instants_to_rollback=tuple(
            payload.InstantReference(commit_time=one, action=active.with_time(one)[0].action.value)
            for one in undone
        ),
        savepoint_to_restore_timestamp=to,
    )
    return payload.encode_plan(plan)


def test_nothing_begins_while_a_restore_is_pending_and_the_next_call_goes_on_with_it() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    plan = restore_plan(world, to)
    pending = publish(world.context(70), Action.RESTORE, plan, claims=False)
    with pytest.raises(Conflict) as refused:
        world.write(updated())
    assert refused.value.code == "restore_pending"
    done = restore(world.context(52), to)
    assert done.was_pending
    assert done.instant == pending.instant
    assert_back(world, COW)


def test_a_restore_that_somebody_is_at_is_waited_for() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    theirs = publish(world.context(70), Action.RESTORE, restore_plan(world, to), claims=True)
    with pytest.raises(Conflict) as refused:
        restore(world.context(52), to)
    assert refused.value.code == "instant_held"
    world.clock.advance(DEAD_AFTER_MS)
    assert restore(world.context(52), to).instant == theirs.instant
    assert_back(world, COW)


def test_a_restore_whose_plan_is_torn_is_removed_and_planned_anew() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    plan = restore_plan(world, to)
    torn = publish(world.context(70), Action.RESTORE, plan[: len(plan) // 2], claims=False)
    world.clock.advance(1000)
    done = restore(world.context(52), to)
    assert done.instant != torn.instant
    assert len(done.undone) == len(LATER)
    assert_back(world, COW)


def test_the_plan_and_the_outcome_are_what_java_writes() -> None:
    world = new_service_world(COW, *HISTORY)
    to = newest(world)
    world.write(*LATER)
    done = restore(world.context(52), to)
    for storage in (world.storage, world.storage.below(".hoodie/metadata")):
        (path,) = [e.path for e in storage.list(".hoodie/timeline").files if ".restore" in e.name][
            -1:
        ]
        metadata = payload.decode(storage.read(path), path)
        assert metadata.instants_to_rollback == done.undone
        assert sorted(metadata.hoodie_restore_metadata) == sorted(done.undone)
        (requested,) = [
            e.path
            for e in storage.list(".hoodie/timeline").files
            if e.name.endswith("re.requested")
        ]
        plan = payload.decode_plan(storage.read(requested), requested)
        assert plan.savepoint_to_restore_timestamp == to
        assert plan.version == 2
        assert [one.commit_time for one in plan.instants_to_rollback] == list(done.undone)
        assert plan.instants_to_rollback == metadata.restore_instant_info
        for instant, (rolled_back,) in metadata.hoodie_restore_metadata.items():
            assert rolled_back.commits_rollback == (instant,)
            assert [one.commit_time for one in rolled_back.instants_rollback] == [instant]
            files = rolled_back.partition_metadata.values()
            assert sum(len(one.success_delete_files) for one in files) > 0
