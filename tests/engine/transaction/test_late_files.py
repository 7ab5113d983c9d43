"""Late files: what attempts write after others have taken over, and what they may not remove."""

import pytest

from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.kernel.errors import Conflict, Defect
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import Ledger, assert_may_delete, read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.transaction.sweep.sweep import (
    SWEEPS_FOLDER,
    attempt_of,
    remove_written,
    sweep,
)
from tests.engine.transaction.fake_locks import PLAN, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.plans import started
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    TransactionTable,
    Writer,
)


def taken_over(world: TransactionTable, attempts: int) -> list[tuple[Writer, Attempt]]:
    """Attempts at one plan, each of which takes those before it for dead."""
    plan = publish(world.writer().context, Action.COMPACTION, PLAN, claims=False).instant
    made = []
    for _ in range(attempts):
        own = world.writer()
        attempt = start(own.context, plan).attempt
        assert attempt is not None
        made.append((own, attempt))
        world.clock.advance(DEAD_AFTER_MS)
    return made


def test_a_late_file_of_an_attempt_goes_with_the_sweep_though_the_next_one_has_committed() -> None:
    world = TransactionTable()
    (slow, paused), (fast, attempt) = taken_over(world, 2)
    fast.commit(attempt, fast.write_file(attempt, "f1"))
    slow.write_file(paused, "f1")
    world.clock.advance(SWEPT_AFTER_MS)
    assert sweep(world.writer().context)[0].files_deleted == 1
    assert world.data_files() == world.committed_files()


def test_a_sweep_waits_for_the_attempt_that_took_over() -> None:
    world = TransactionTable()
    (_, paused), _ = taken_over(world, 2)
    world.clock.advance(SWEPT_AFTER_MS)
    assert sweep(world.writer().context) == ()
    (waiting,) = world.storage.list(SWEEPS_FOLDER).files
    assert paused.instant in waiting.name


def test_an_attempt_removes_its_own_files_though_the_next_one_has_committed() -> None:
    world = TransactionTable()
    (slow, paused), (fast, attempt) = taken_over(world, 2)
    fast.commit(attempt, fast.write_file(attempt, "f1"))
    with pytest.raises(Conflict):
        slow.commit(paused, slow.write_file(paused, "f1"))
    assert world.data_files() == world.committed_files()


def test_a_file_is_swept_of_which_only_the_marker_was_there_at_the_rollback() -> None:
    world = TransactionTable()
    slow = world.writer()
    attempt = slow.begin()
    late = MarkedFile("p=late", f"f1_{attempt.write_token(0)}_{attempt.instant}.parquet")
    leave_marker(world.storage, attempt.instant, late, MarkerKind.CREATE)
    world.clock.advance(DEAD_AFTER_MS)
    cancel(world.writer().context, attempt.instant, "dead")
    world.storage.put(late.path, b"late")
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(world.writer().context)
    assert world.data_files() == frozenset()


def test_files_say_which_attempt_of_ours_made_them() -> None:
    assert attempt_of("f1_7-0-3_20260101000000000.parquet") == 3
    # A task that Spark has tried twice.
    assert attempt_of("f1_7-1-3_20260101000000000.parquet") == 3
    assert attempt_of(".f1_20260101000000000.log.1_7-0-12") == 12
    assert attempt_of("f1_20260101000000000") == 0


def test_no_sweep_takes_what_a_commit_has_named() -> None:
    world = TransactionTable()
    _, (fast, attempt) = taken_over(world, 2)
    name = f"f1_0-1-{attempt.number}_{attempt.instant}.parquet"
    file = MarkedFile("p=a", name)
    leave_marker(world.storage, attempt.instant, file, MarkerKind.CREATE)
    world.storage.put(file.path, b"tried twice")
    stat = WriteStat(file_id="f1", path=file.path, partition_path="p=a", file_size_in_bytes=11)
    fast.commit(attempt, stat)
    world.clock.advance(SWEPT_AFTER_MS)
    assert sweep(world.writer().context)[0].files_deleted == 0
    assert world.data_files() == {file.path}


def test_no_sweep_takes_what_a_commit_has_named_whoever_made_it() -> None:
    world = TransactionTable()
    _, (fast, attempt) = taken_over(world, 2)
    file = MarkedFile("p=a", f"f1_3-21-1_{attempt.instant}.parquet")
    leave_marker(world.storage, attempt.instant, file, MarkerKind.CREATE)
    world.storage.put(file.path, b"by a task")
    stat = WriteStat(file_id="f1", path=file.path, partition_path="p=a", file_size_in_bytes=9)
    fast.commit(attempt, stat)
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(world.writer().context)
    assert world.data_files() == {file.path}


def test_an_attempt_removes_what_another_engine_has_left_of_its_own() -> None:
    world = TransactionTable()
    _, (fast, attempt) = taken_over(world, 2)
    file = MarkedFile("p=a", f"f1_3-21-977_{attempt.instant}.parquet")
    leave_marker(world.storage, attempt.instant, file, MarkerKind.CREATE)
    world.storage.put(file.path, b"by Java")
    fast.commit(attempt, fast.write_file(attempt, "f1"))
    assert world.data_files() == world.committed_files()


def test_a_paused_attempt_removes_nothing_of_the_one_that_took_over() -> None:
    world = TransactionTable()
    (slow, paused), (fast, attempt) = taken_over(world, 2)
    own = slow.write_file(paused, "f1")
    theirs = fast.write_file(attempt, "f1")
    with pytest.raises(Conflict):
        slow.commit(paused, own)
    assert world.data_files() == {theirs.path}
    # Java, too, sees it alive still.
    assert world.storage.stat(standard_path(attempt.instant)) is not None
    fast.commit(attempt, theirs)


@pytest.mark.parametrize("files", [(), ("f1",)])
def test_one_that_is_taken_over_in_the_middle_of_its_commit_says_so_and_removes_nothing(
    files: tuple[str, ...],
) -> None:
    world = TransactionTable()
    slow, fast = world.writer(), world.writer(lock=NoLock)
    plan = publish(slow.context, Action.COMPACTION, PLAN, claims=False).instant
    paused = started(slow, plan)
    stats = [slow.write_file(paused, file) for file in files]
    theirs = []

    def takes_over() -> None:
        world.clock.advance(DEAD_AFTER_MS)
        theirs.append(fast.write_file(started(fast, plan), "f1").path)

    # Read when it has made sure that it may commit, and before it looks at files.
    requested = f".hoodie/timeline/{plan}.compaction.requested"
    hook = Hook(1, takes_over, of=("read_if_present", requested))
    with pytest.raises(Conflict) as raised:
        slow.with_storage(hook.storage(world.storage)).commit(paused, *stats)
    assert raised.value.code == "superseded"
    assert list(world.data_files()) == theirs


def test_law_1_all_files_of_an_instant_may_go_only_behind_a_cancel() -> None:
    world = TransactionTable()
    ((_, attempt),) = taken_over(world, 1)
    ledger = read_ledger(world.storage, attempt.instant)
    for made_by in (0, 1):
        with pytest.raises(Defect):
            assert_may_delete(ledger, made_by)
    with pytest.raises(Defect):
        assert_may_delete(Ledger(attempt.instant), 0)
    with pytest.raises(Defect):
        remove_written(world.writer().context, ledger, 0, ())
