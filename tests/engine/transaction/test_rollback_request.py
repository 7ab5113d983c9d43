"""Rollback on request: the newest write goes as if it had never been, or stays with a reason."""

from dataclasses import replace

import pytest

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.clean import CleanPlan, encode_plan
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.formats.instant_metadata.rollback import InstantReference, RollbackPlan
from lakewarden.engine.formats.instant_metadata.rollback import encode_plan as encode_rollback
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Committed, Withdrawn
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.commit import commit
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback_request import rollback
from lakewarden.engine.transaction.state.context import Context
from tests.engine.transaction.fake_locks import LosesItself
from tests.engine.transaction.plans import published, started
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable
from tests.golden_tables import GoldenTable


def test_the_table_is_what_it_was_before_the_write() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    before = world.visible()
    newest = world.writer().write("f1", "f2").instant
    done = rollback(world.writer().context, newest)
    assert (done.instant, done.action, done.files_deleted) == (newest, Action.COMMIT, 2)
    assert world.visible() == world.data_files() == before
    assert [i.action for i in world.timeline().instants] == [Action.COMMIT, Action.ROLLBACK]
    assert isinstance(read_ledger(world.storage, newest).last, Withdrawn)


def test_the_only_write_can_be_taken_back() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    rollback(world.writer().context, newest)
    assert world.data_files() == frozenset()


def test_twice_is_once() -> None:
    world = TransactionTable()
    older, newest = (world.writer().write("f1").instant for _ in range(2))
    first = rollback(world.writer().context, newest)
    rollback(world.writer().context, older)
    again = rollback(world.writer().context, newest)
    assert (again.rollback, again.completed) == (first.rollback, first.completed)
    assert again.files_deleted == 0


def test_writes_are_taken_back_from_the_newest_on() -> None:
    world = TransactionTable()
    older = world.writer().write("f1").instant
    newer = world.writer().write("f1").instant
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, older)
    assert (raised.value.code, raised.value.other) == ("later_writes", newer)
    assert len(world.visible()) == 1
    rollback(world.writer().context, newer)
    rollback(world.writer().context, older)
    assert world.data_files() == frozenset()


def test_a_dead_write_is_taken_back_and_a_live_one_is_not() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    with pytest.raises(Conflict) as raised:
        rollback(world.writer().context, attempt.instant)
    assert raised.value.code == "instant_held"
    world.clock.advance(DEAD_AFTER_MS)
    never = {"hoodie__clean__failed__writes__policy": "NEVER"}
    assert rollback(world.writer(**never).context, attempt.instant).files_deleted == 1
    assert world.data_files() == frozenset()


def test_whatever_is_under_way_stands_in_the_way() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    live = world.writer().begin()
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, newest)
    assert (raised.value.code, raised.value.other) == ("pending_instants", live.instant)


def test_a_write_that_began_before_and_is_under_way_stands_in_the_way() -> None:
    world = TransactionTable()
    live = world.writer().begin()
    newest = world.writer().write("f1").instant
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, newest)
    assert (raised.value.code, raised.value.other) == ("pending_instants", live.instant)
    assert len(world.visible()) == 1


def test_of_two_writes_at_the_same_time_neither_is_the_newest() -> None:
    world = TransactionTable()
    slow = world.writer()
    attempt = slow.begin()
    fast = world.writer().write("f1").instant
    slow.commit(attempt, slow.write_file(attempt, "f2"))
    for instant, other in ((attempt.instant, fast), (fast, attempt.instant)):
        with pytest.raises(InvalidRequest) as raised:
            rollback(world.writer().context, instant)
        assert (raised.value.code, raised.value.other) == ("later_writes", other)
    assert len(world.visible()) == 2


def test_a_rollback_that_java_has_just_begun_is_gone_on_with() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    target = InstantReference(commit_time=newest, action="commit")
    content = encode_rollback(RollbackPlan(instant_to_rollback=target))
    started = publish(world.writer().context, Action.ROLLBACK, content, claims=False).instant
    assert rollback(world.writer().context, newest).rollback == started
    assert world.data_files() == frozenset()


def test_a_compaction_of_logs_alone_is_taken_back() -> None:
    world = TransactionTable()
    own = world.writer()
    attempt = started(own, published(world))
    own.commit(attempt, own.write_file(attempt, "f1"))
    assert rollback(world.writer().context, attempt.instant).files_deleted == 1


@pytest.mark.parametrize("is_cleaned", [True, False])
def test_what_was_replaced_and_cleaned_cannot_come_back(is_cleaned: bool) -> None:
    world = TransactionTable()
    world.writer().write("f1")
    (old,) = world.data_files()
    own = world.writer()
    attempt = own.begin(Action.REPLACE_COMMIT)
    outcome = own.outcome(attempt, own.write_file(attempt, "f2"))
    metadata = outcome.metadata
    assert isinstance(metadata, ReplaceCommitMetadata)
    metadata = replace(metadata, partition_to_replace_file_ids={"p=a": ("f1",)})
    commit(own.context, attempt, replace(outcome, metadata=metadata))
    if not is_cleaned:
        rollback(world.writer().context, attempt.instant)
        assert world.visible() == {old}
        return
    world.storage.delete(old)
    with pytest.raises(InvalidRequest, match="p=a/f1") as raised:
        rollback(world.writer().context, attempt.instant)
    assert raised.value.code == "inputs_cleaned"
    assert len(world.visible()) == 1


def test_a_plan_that_was_made_before_the_write_does_not_stand_in_the_way() -> None:
    world = TransactionTable()
    plan = compaction.encode_plan(compaction.CompactionPlan())
    publish(world.writer().context, Action.COMPACTION, plan, claims=False)
    newest = world.writer().write("f1").instant
    rollback(world.writer().context, newest)
    later = world.writer().write("f2").instant
    publish(world.writer().context, Action.COMPACTION, plan, claims=False)
    with pytest.raises(InvalidRequest):
        rollback(world.writer().context, later)


def test_a_dead_write_does_not_stand_in_the_way() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    world.writer().begin()
    world.clock.advance(DEAD_AFTER_MS)
    rollback(world.writer().context, newest)
    assert world.data_files() == frozenset()


def test_what_is_no_write_is_not_taken_back() -> None:
    world = TransactionTable()
    content = encode_plan(CleanPlan(policy="KEEP_LATEST_COMMITS"))
    left = publish(world.writer().context, Action.CLEAN, content, claims=False).instant
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, left)
    assert raised.value.code == "unknown_instant"
    assert [one.requested for one in world.timeline().pending()] == [left]


def test_a_rollback_is_not_taken_back() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    done = rollback(world.writer().context, newest)
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, done.rollback)
    assert raised.value.code == "unknown_instant"


def test_without_the_lock_nothing_is_taken_back() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    careless = world.writer(lock=lambda: LosesItself(1))
    with pytest.raises(Conflict) as raised:
        rollback(careless.context, newest)
    assert raised.value.code == "lock_lost"
    assert isinstance(read_ledger(world.storage, newest).last, Committed)


def test_a_savepoint_protects_its_write() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    world.storage.put(f".hoodie/timeline/{newest}_29990101000000000.savepoint", b"")
    with pytest.raises(InvalidRequest) as raised:
        rollback(world.writer().context, newest)
    assert raised.value.code == "savepointed"
    assert len(world.visible()) == 1


def test_an_instant_that_was_never_there_is_refused() -> None:
    with pytest.raises(InvalidRequest) as raised:
        rollback(TransactionTable().writer().context, "20231114221320000")
    assert raised.value.code == "unknown_instant"


def test_nobody_publishes_a_write_again_whose_rollback_was_left_halfway() -> None:
    world = TransactionTable()
    newest = world.writer().write("f1").instant
    rollback(world.writer().context, newest)
    assert recover_failed_instants(world.writer().context) == ()
    assert world.visible() == frozenset()


def context_of(storage: Storage) -> Context:
    ports, settings = Ports(), Settings()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def slices(
    storage: Storage, as_of: str | None = None, *, use_metadata: bool
) -> tuple[FileSlice, ...]:
    state = load_snapshot(storage)
    groups = state.file_groups(state.visibility(as_of), None, use_metadata=use_metadata)
    return tuple(group.latest_merged() for group in groups)


TAKEN_BACK = (
    "cow_rollback_of_failed_write",
    "cow_clustering_completed",
    "cow_overwrite_and_delete_partition",
    "cow_record_index_partitioned",
    "mor_bloom_column_partition_stats",
    "mor_compaction_completed",
    "mor_deletes",
    "mor_savepoint",
)


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_the_newest_write_of_java_is_taken_back_with_what_the_metadata_table_knew_of_it(
    golden_copy: GoldenTable, name: str
) -> None:
    storage = open_storage(Location(str(golden_copy(name))))
    *_, before, newest = load_snapshot(storage).timeline.active.completed()
    expected = slices(storage, before.requested, use_metadata=False)
    rollback(context_of(storage), newest.requested)
    assert slices(storage, use_metadata=False) == expected
    assert slices(storage, use_metadata=True) == expected


def test_what_a_clean_has_removed_cannot_come_back(golden_copy: GoldenTable) -> None:
    storage = open_storage(Location(str(golden_copy("mor_metadata_services"))))
    newest = load_snapshot(storage).timeline.active.completed()[-1]
    before = storage.walk("")
    with pytest.raises(InvalidRequest) as raised:
        rollback(context_of(storage), newest.requested)
    assert raised.value.code == "inputs_cleaned"
    assert storage.walk("") == before
