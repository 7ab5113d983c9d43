"""The metadata table's services: what they do, what they say, and what holds them back."""

from functools import cache

import pytest

from lakewarden.engine.formats.instant_metadata import clean, commit
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.services.metadata_table.service import (
    MetadataMaintenance,
    MetadataService,
    maintain_metadata_table,
)
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.rollback_request import rollback
from tests.engine.services.service_table import (
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    updated,
)
from tests.writing.shapes import Shape

CLEAN, COMPACTION, LOG_COMPACTION, ARCHIVE = MetadataService
KEEPS_ONE = {
    "hoodie__metadata__derive__from__datatable__clean__policy": False,
}


@cache
def _history(writes: int) -> ServiceWorld:
    updates = (updated(2, ts=number) for number in range(2, writes + 1))
    return new_service_world(MOR, inserted(2), *updates)


def after_writes(writes: int) -> ServiceWorld:
    world = _history(writes).copy()
    world.clock.advance(1000_000)
    return world


def state_of(world: ServiceWorld) -> MetadataTable:
    return load_metadata_table(world.storage, load_config(world.storage))


def maintained(
    world: ServiceWorld, *services: MetadataService, **what: object
) -> MetadataMaintenance:
    wanted = {"services": services} if services else {}
    flags = {name: what.pop(name) for name in ("dry_run", "honour_triggers") if name in what}
    answer = maintain_metadata_table(world.context(80, **what), **wanted, **flags)  # type: ignore[arg-type]
    world.clock.advance(1000)
    return answer


def assert_truth(world: ServiceWorld, before: list[dict[str, object]]) -> None:
    assert world.rows() == before
    assert world.rows(use_metadata=False) == before
    assert world.differences_of_listings() == set()


def test_a_compaction_waits_for_nothing_when_it_is_asked_for() -> None:
    world = after_writes(2)
    before = world.rows()
    step = maintained(world).by_service[COMPACTION]
    assert step.is_done
    active = state_of(world).timeline.active
    (instant,) = active.completed((Action.COMMIT,))
    assert instant.requested == step.instant
    metadata = commit.decode(active.read(instant), "x")
    assert step.items == sum(map(len, metadata.partition_to_write_stats.values()))
    assert_truth(world, before)


def test_a_second_one_finds_nothing_to_do_and_says_so() -> None:
    world = after_writes(2)
    maintained(world)
    step = maintained(world).by_service[COMPACTION]
    assert not step
    assert step.why_nothing == "There are 0 deltacommits since the last one; 1 are needed."


def test_triggers_are_those_of_writes() -> None:
    answer = maintained(after_writes(2), honour_triggers=True)
    assert not any(answer.steps)
    assert "10 are needed" in str(answer.by_service[COMPACTION].why_nothing)
    assert "log.compaction.enable is false" in str(answer.by_service[LOG_COMPACTION].why_nothing)


def test_logs_are_compacted_where_only_that_is_asked_for() -> None:
    world = after_writes(5)
    before = world.rows()
    step = maintained(world, LOG_COMPACTION).by_service[LOG_COMPACTION]
    assert step.is_done
    files = state_of(world).timeline.active.files
    assert [f.instant.requested for f in files if f.started_as is Action.LOG_COMPACTION] == [
        step.instant
    ]
    assert_truth(world, before)


@pytest.mark.parametrize("service", [COMPACTION, LOG_COMPACTION])
def test_a_write_that_was_folded_with_others_is_not_taken_back(service: MetadataService) -> None:
    world = after_writes(5)
    before = world.rows()
    newest = world.table(97).timeline().completed()[-1].requested
    maintained(world, service)
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.context(81), newest)
    assert (raised.value.code, raised.value.instant) == ("metadata_compacted", newest)
    assert_truth(world, before)
    world.write(updated(2, ts=20))
    rollback(world.context(82), world.table(97).timeline().completed()[-1].requested)
    assert_truth(world, before)


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    world = after_writes(5)
    entries = sorted(entry.path for entry in world.storage.walk(""))
    for services in ((COMPACTION,), (LOG_COMPACTION,)):
        dry_run_result = maintained(world, *services, dry_run=True)
        assert dry_run_result.is_dry_run
        assert [bool(step) for step in dry_run_result.steps] == [True]
        assert sorted(entry.path for entry in world.storage.walk("")) == entries
        done = maintained(world.copy(), *services)
        assert [step.items for step in done.steps] == [step.items for step in dry_run_result.steps]


def test_a_pending_instant_is_named_with_its_age_and_what_to_do() -> None:
    """A log of an instant older than those that were compacted would come before these."""
    world = after_writes(2)
    attempt = publish(world.context(70), Action.DELTA_COMMIT, claims=True).attempt
    assert attempt is not None
    to_inflight(world.context(70), attempt)
    attempt.stop()
    world.clock.advance(90_000)
    for number in range(5):
        world.clock.advance(1000)
        # A writer that leaves failed ones alone.
        rows = updated(2, ts=20 + number).table()
        world.table(60 + number).upsert(rows, {"hoodie.clean.failed.writes.policy": "NEVER"})
    step = maintained(world, LOG_COMPACTION).by_service[LOG_COMPACTION]
    assert not step
    assert step.blocker is not None
    assert step.blocker.instant == attempt.instant
    assert step.blocker.age_seconds is not None
    assert step.blocker.age_seconds >= 90
    assert "Roll it back" in step.blocker.remedy


def test_old_slices_are_cleaned_once_readers_have_had_time() -> None:
    world = after_writes(2)
    for number in range(3):
        maintained(world, COMPACTION)
        world.write(updated(2, ts=30 + number))
    fresh = maintained(world, CLEAN, **KEEPS_ONE).by_service[CLEAN]
    assert not fresh
    assert "readers may still use" in str(fresh.why_nothing)
    world.write(updated(2, ts=40), updated(2, ts=41))
    before = world.rows()
    dry_run_result = maintained(world, CLEAN, dry_run=True, **KEEPS_ONE).by_service[CLEAN]
    step = maintained(world, CLEAN, **KEEPS_ONE).by_service[CLEAN]
    assert step.is_done
    assert (step.items, step.bytes) == (dry_run_result.items, dry_run_result.bytes)
    active = state_of(world).timeline.active
    (instant,) = active.completed((Action.CLEAN,))
    metadata = clean.decode(active.read(instant), "x")
    assert metadata.total_files_deleted == step.items
    for place in metadata.partition_metadata.values():
        for name in place.success_delete_files:
            assert state_of(world).storage.stat(f"{place.partition_path}/{name}") is None
    assert_truth(world, before)
    world.write(updated(2, ts=50))
    assert world.rows(use_metadata=False) == world.rows()


def test_by_default_twenty_commits_are_kept() -> None:
    world = after_writes(2)
    maintained(world, COMPACTION)
    world.write(*(updated(2, ts=30 + number) for number in range(3)))
    step = maintained(world, CLEAN).by_service[CLEAN]
    assert not step
    assert "20 are retained" in str(step.why_nothing)


def test_the_timeline_is_archived_with_that_of_the_table() -> None:
    world = after_writes(2)
    step = maintained(world, ARCHIVE).by_service[ARCHIVE]
    assert not step
    assert step.why_nothing


def test_a_table_without_one_is_told_so() -> None:
    world = new_service_world(Shape("mor", has_metadata=False), inserted(2))
    answer = maintained(world)
    assert not answer
    assert {step.why_nothing for step in answer.steps} == {"The table has no metadata table."}


@pytest.mark.parametrize("service", [COMPACTION, LOG_COMPACTION])
def test_writes_go_on_after_it(service: MetadataService) -> None:
    world = after_writes(5)
    maintained(world, service)
    world.write(updated(2, ts=30), inserted(4), updated(4, ts=31))
    assert world.rows(use_metadata=False) == world.rows()
    assert {row["ts"] for row in world.rows()} == {31}


def test_without_the_lock_if_nothing_is_due() -> None:
    world = after_writes(2)
    context = world.context(81)
    with world.context(82).lock.hold():
        assert not maintain_metadata_table(context, honour_triggers=True)


def test_a_clean_that_was_left_is_finished_first() -> None:
    world = after_writes(2)
    for number in range(3):
        maintained(world, COMPACTION)
        world.write(updated(2, ts=30 + number))
    world.write(updated(2, ts=40), updated(2, ts=41))
    done = maintained(world, CLEAN, **KEEPS_ONE).by_service[CLEAN]
    state = state_of(world)
    (files,) = [one for one in state.timeline.active.files if one.started_as is Action.CLEAN]
    assert files.completed is not None
    state.storage.delete(files.completed.entry.path)
    answer = maintained(world, CLEAN, **KEEPS_ONE)
    assert answer.settled == (done.instant,)
    assert not state_of(world).timeline.active.pending()
