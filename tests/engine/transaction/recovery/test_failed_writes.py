"""Failed writes: the dead are undone, the living are left alone, the committed are published."""

import pytest

from lakewarden.engine.formats.instant_metadata import clean, compaction, rollback
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.formats.instant_metadata.rollback import InstantReference, RollbackPlan
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.entries import Cancelled, Withdrawn
from lakewarden.engine.timeline.ledger.ledger import (
    LEDGER_FOLDER,
    Ledger,
    read_ledger,
    remove_ledger,
)
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.recovery.failed_writes import Repair, recover_failed_instants
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.transaction.state.plan_scope import PlanScope
from lakewarden.engine.transaction.sweep.sweep import sweep
from tests.engine.transaction.fake_locks import LosesItself, NoLock
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.plans import published
from tests.engine.transaction.transaction_table import (
    DEAD_AFTER_MS,
    SWEPT_AFTER_MS,
    TransactionTable,
    Writer,
)

# A write started by Java: no ledger, and a heartbeat only with the LAZY policy.
JAVA = "20231114221319000"
LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
EAGER = {"hoodie.clean.failed.writes.policy": "EAGER"}
NEVER = {"hoodie.clean.failed.writes.policy": "NEVER"}
SEVERAL = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def writer(world: TransactionTable, settings: dict[str, str]) -> Writer:
    return world.writer(**{key.replace(".", "__"): value for key, value in settings.items()})


def java_write(world: TransactionTable, *, heartbeats: bool, marks: bool = True) -> str:
    """A write that Java has started; the path of its file."""
    file = MarkedFile("p=a", f"j1_1-22-333_{JAVA}.parquet")
    if heartbeats:
        world.storage.put(standard_path(JAVA), b"")
    world.storage.put(f".hoodie/timeline/{JAVA}.commit.requested", b"")
    world.storage.put(f".hoodie/timeline/{JAVA}.inflight", b"")
    if marks:
        leave_marker(world.storage, JAVA, file, MarkerKind.CREATE)
    world.storage.put("p=a/.hoodie_partition_metadata", b"#")
    world.storage.put(file.path, b"rows")
    return file.path


def started(world: TransactionTable) -> str:
    own = world.writer()
    attempt = own.begin()
    own.write_file(attempt, "f1")
    return attempt.instant


def pending(world: TransactionTable) -> list[str]:
    return [instant.requested for instant in world.timeline().pending()]


def test_a_table_at_rest_costs_one_look() -> None:
    world = TransactionTable()
    world.writer().write("f1")
    calm = world.writer(FaultPlan())
    assert recover_failed_instants(calm.context) == ()
    assert isinstance(calm.storage, FaultyStorage)
    completed = ".hoodie/timeline/20231114221320000_20231114221320001.commit"
    assert [(call.operation, call.path) for call in calm.storage.calls] == [
        ("read_if_present", ".hoodie/hoodie.properties"),
        ("read_if_present", ".hoodie/hoodie.properties.backup"),
        ("list", ".hoodie/timeline"),
        ("read", completed),
    ]


@pytest.mark.parametrize("policy", [EAGER, LAZY, NEVER, {}])
def test_t11_a_live_write_of_ours_is_left_alone_whatever_the_policy(policy: dict[str, str]) -> None:
    world = TransactionTable()
    instant = started(world)
    assert recover_failed_instants(writer(world, policy).context) == ()
    assert pending(world) == [instant]


@pytest.mark.parametrize("policy", [EAGER, LAZY, SEVERAL, {}])
def test_t10_a_dead_write_of_ours_is_rolled_back(policy: dict[str, str]) -> None:
    world = TransactionTable()
    instant = started(world)
    world.clock.advance(DEAD_AFTER_MS)
    (settled,) = recover_failed_instants(writer(world, policy).context)
    assert (settled.instant, settled.repair, settled.files_deleted) == (
        instant,
        Repair.ROLLED_BACK,
        1,
    )
    assert pending(world) == []
    assert world.data_files() == frozenset()


def test_the_policy_may_leave_the_dead_as_they_are() -> None:
    world = TransactionTable()
    instant = started(world)
    world.clock.advance(DEAD_AFTER_MS)
    assert recover_failed_instants(writer(world, NEVER).context) == ()
    assert pending(world) == [instant]


def test_a_write_whose_process_is_gone_is_dead_at_once() -> None:
    world = TransactionTable()
    started(world)
    world.gone.add(1)
    assert len(recover_failed_instants(world.writer().context)) == 1
    assert pending(world) == []


@pytest.mark.parametrize("policy", [EAGER, LAZY, {}])
def test_a_write_whose_process_died_before_its_claim_is_dead_at_once(
    policy: dict[str, str],
) -> None:
    living = TransactionTable().writer(FaultPlan())
    living.begin()
    assert isinstance(living.storage, FaultyStorage)
    (at,) = [call.number for call in living.storage.calls if call.path.endswith(".requested")]
    world = TransactionTable()
    dying = world.writer(FaultPlan((Fault(at, FaultKind.FAIL_AFTER, is_fatal=True),)))
    with pytest.raises(Crashed):
        dying.begin()
    (left,) = pending(world)
    assert recover_failed_instants(writer(world, policy).context) == ()
    world.gone.add(1)
    assert [
        settled.instant for settled in recover_failed_instants(writer(world, policy).context)
    ] == [left]
    assert pending(world) == []


@pytest.mark.parametrize("policy", [EAGER, LAZY])
def test_t12_a_write_of_java_is_alive_as_long_as_it_says_so(policy: dict[str, str]) -> None:
    world = TransactionTable()
    java_write(world, heartbeats=True)
    assert recover_failed_instants(writer(world, policy).context) == ()
    world.clock.advance(DEAD_AFTER_MS)
    assert len(recover_failed_instants(writer(world, policy).context)) == 1
    assert world.data_files() == frozenset()


def test_a_write_of_java_without_any_sign_of_life_is_undone_at_once_by_a_single_writer() -> None:
    world = TransactionTable()
    java_write(world, heartbeats=False)
    assert len(recover_failed_instants(writer(world, EAGER).context)) == 1
    assert pending(world) == []


def test_a_write_of_java_without_any_sign_of_life_has_a_while_among_several_writers() -> None:
    world = TransactionTable()
    java_write(world, heartbeats=False)
    assert recover_failed_instants(writer(world, SEVERAL).context) == ()
    world.clock.advance(DEAD_AFTER_MS)
    assert len(recover_failed_instants(writer(world, SEVERAL).context)) == 1


def test_t1_the_files_of_a_write_without_markers_are_found_all_the_same() -> None:
    world = TransactionTable()
    path = java_write(world, heartbeats=False, marks=False)
    (settled,) = recover_failed_instants(world.writer().context)
    assert settled.files_deleted == 1
    assert world.storage.stat(path) is None


def test_the_rollback_says_what_java_would_say() -> None:
    world = TransactionTable()
    path = java_write(world, heartbeats=False)
    (settled,) = recover_failed_instants(world.writer().context)
    active = world.timeline()
    (done,) = active.completed((Action.ROLLBACK,))
    assert done.requested == settled.rollback
    files = active.files_of(done)
    assert files is not None
    assert files.requested is not None
    assert files.inflight is not None
    uri = world.storage.uri(path)
    plan = rollback.decode_plan(active.read(files.requested.instant), "plan")
    target = InstantReference(commit_time=JAVA, action="commit")
    assert plan.instant_to_rollback == target
    (request,) = plan.rollback_requests
    assert (request.partition_path, request.file_id, request.latest_base_instant) == ("p=a", "", "")
    assert (request.files_to_be_deleted, request.log_blocks_to_be_deleted) == ((uri,), {})
    metadata = rollback.decode(active.read(done), "metadata")
    assert (metadata.start_rollback_time, metadata.total_files_deleted) == (done.requested, 1)
    assert metadata.commits_rollback == (JAVA,)
    assert metadata.instants_rollback == (target,)
    assert metadata.partition_metadata["p=a"].success_delete_files == (uri,)
    assert active.files_of(done) is not None


def test_after_a_rollback_nothing_of_the_write_is_left_but_a_due_sweep() -> None:
    world = TransactionTable()
    instant = started(world)
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    (entry,) = world.traces(instant)
    assert entry.startswith(".hoodie/.lakewarden/sweeps/")
    world.clock.advance(SWEPT_AFTER_MS)
    sweep(world.writer().context)
    assert world.traces(instant) == []


def java_rollback(world: TransactionTable, name: str = "20231114221319500") -> str:
    """A rollback that Java has planned, with an empty plan as it makes without markers."""
    plan = RollbackPlan(
        instant_to_rollback=InstantReference(commit_time=JAVA, action="commit"),
    )
    path = f".hoodie/timeline/{name}.rollback.requested"
    world.storage.put(path, rollback.encode_plan(plan))
    return name


def test_t4d_a_rollback_that_java_has_left_is_finished_under_its_own_instant() -> None:
    world = TransactionTable()
    path = java_write(world, heartbeats=False, marks=False)
    name = java_rollback(world)
    world.clock.advance(DEAD_AFTER_MS)
    (settled,) = recover_failed_instants(world.writer().context)
    assert settled.rollback == name
    assert world.storage.stat(path) is None
    assert [i.requested for i in world.timeline().instants] == [name]


def test_a_rollback_that_java_has_just_begun_is_left_to_it() -> None:
    world = TransactionTable()
    java_write(world, heartbeats=False)
    java_rollback(world)
    assert recover_failed_instants(world.writer().context) == ()


def test_a_rollback_that_a_live_java_is_at_is_left_to_it() -> None:
    world = TransactionTable()
    java_write(world, heartbeats=False)
    name = java_rollback(world)
    world.clock.advance(DEAD_AFTER_MS)
    world.storage.put(standard_path(name), b"")
    assert recover_failed_instants(world.writer().context) == ()
    assert pending(world) == [JAVA, name]


@pytest.mark.parametrize(
    ("is_cancelled", "is_started", "stays"),
    [(False, False, True), (True, True, True), (True, False, False)],
)
def test_a_clean_waits_unless_it_was_cancelled_before_anybody_began(
    is_cancelled: bool, is_started: bool, stays: bool
) -> None:
    world = TransactionTable()
    content = clean.encode_plan(clean.CleanPlan(policy="KEEP_LATEST_COMMITS"))
    left = publish(world.writer().context, Action.CLEAN, content, claims=False).instant
    if is_started:
        world.storage.put(f".hoodie/timeline/{left}.clean.inflight", b"")
    if is_cancelled:
        context = world.writer().context
        append_cancelled(context, Ledger(left), Action.CLEAN, PlanScope(), reason="not wanted")
    recover_failed_instants(world.writer().context)
    assert (left in pending(world)) is stays


def test_a_rollback_that_java_left_after_its_target_was_gone_is_finished() -> None:
    world = TransactionTable()
    path = java_write(world, heartbeats=False)
    name = java_rollback(world)
    for state in ("commit.requested", "inflight"):
        world.storage.delete(f".hoodie/timeline/{JAVA}.{state}")
    world.clock.advance(DEAD_AFTER_MS)
    (settled,) = recover_failed_instants(world.writer().context)
    assert settled.rollback == name
    assert world.storage.stat(path) is None
    assert pending(world) == []


def test_what_a_completed_rollback_has_left_of_its_target_is_removed() -> None:
    world = TransactionTable()
    java_write(world, heartbeats=False)
    recover_failed_instants(world.writer().context)
    world.storage.put(f".hoodie/timeline/{JAVA}.commit.requested", b"")
    with pytest.raises(Conflict):
        recover_failed_instants(world.writer(lock=lambda: LosesItself(1)).context)
    assert pending(world) == [JAVA]
    recover_failed_instants(world.writer().context)
    assert pending(world) == []


@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_rollback_of_a_completed_write_that_was_left_is_finished(
    is_ours: bool, is_gone: bool
) -> None:
    world = TransactionTable()
    instant = world.writer().write("f1").instant
    if is_gone:
        for entry in world.storage.list(".hoodie/timeline").files:
            world.storage.delete(entry.path)
    if not is_ours:
        remove_ledger(world.storage, read_ledger(world.storage, instant))
    world.clock.advance(1_000)
    target = InstantReference(commit_time=instant, action="commit")
    content = rollback.encode_plan(RollbackPlan(instant_to_rollback=target))
    publish(world.writer().context, Action.ROLLBACK, content, claims=False)
    world.clock.advance(DEAD_AFTER_MS)
    (settled,) = recover_failed_instants(world.writer().context)
    assert (settled.instant, settled.repair) == (instant, Repair.ROLLED_BACK)
    expected = Cancelled if is_gone and not is_ours else Withdrawn
    assert isinstance(read_ledger(world.storage, instant).last, expected)
    assert world.data_files() == frozenset()
    assert pending(world) == []


def java_takes_back(world: TransactionTable, instant: str, *, completes: bool) -> None:
    """Java's rollback of a completed write, as far as the write is only pending again."""
    world.clock.advance(1_000)
    target = InstantReference(commit_time=instant, action="commit")
    plan = rollback.encode_plan(RollbackPlan(instant_to_rollback=target))
    undoing = publish(world.writer().context, Action.ROLLBACK, plan, claims=False).instant
    (completed,) = (
        entry.path
        for entry in world.storage.list(".hoodie/timeline").files
        if entry.name.startswith(f"{instant}_")
    )
    world.storage.delete(completed)
    if completes:
        done = rollback.RollbackMetadata(start_rollback_time=undoing, commits_rollback=(instant,))
        path = f".hoodie/timeline/{undoing}_{int(undoing) + 1}.rollback"
        world.storage.put(path, rollback.encode(done))


@pytest.mark.parametrize("completes", [True, False])
def test_nobody_publishes_again_what_java_takes_back(completes: bool) -> None:
    world = TransactionTable()
    kept = world.writer().write("f1")
    undone = world.writer().write("f2").instant
    java_takes_back(world, undone, completes=completes)
    for _ in range(2):
        recover_failed_instants(world.writer().context)
        world.writer().write("f3")
        assert not any(undone in path for path in world.visible())
        world.clock.advance(DEAD_AFTER_MS)
    assert pending(world) == []
    assert any(kept.instant in path for path in world.visible())


def test_a_live_rollback_by_java_of_what_we_committed_is_left_to_it() -> None:
    world = TransactionTable()
    undone = world.writer().write("f1").instant
    java_takes_back(world, undone, completes=False)
    assert recover_failed_instants(world.writer().context) == ()
    assert undone in pending(world)
    with pytest.raises(Conflict) as caught:
        cancel(world.writer().context, undone, "not wanted")
    assert caught.value.code == "rolled_back_elsewhere"


def test_a_write_that_commits_while_it_is_taken_for_dead_stays() -> None:
    world = TransactionTable()
    slow = world.writer(lock=NoLock)
    attempt = slow.begin()
    stat = slow.write_file(attempt, "f1")
    world.clock.advance(DEAD_AFTER_MS)
    # Found dead, and found dead again under the lock.
    ledger = ("list", f"{LEDGER_FOLDER}/{attempt.instant}")
    hook = Hook(2, lambda: slow.commit(attempt, stat), of=ledger)
    assert recover_failed_instants(world.writer(storage=hook.storage).context) == ()
    assert hook.has_happened
    assert world.visible() == {stat.path}


def test_what_goes_away_while_it_is_looked_at_is_no_error() -> None:
    world = TransactionTable()
    plan = published(world)
    path = f".hoodie/timeline/{plan}.compaction.requested"
    looked = ("list", f"{LEDGER_FOLDER}/{plan}")
    hook = Hook(1, lambda: world.storage.delete(path), of=looked)
    assert (
        recover_failed_instants(world.writer(storage=hook.storage).context, with_plans=True) == ()
    )
    assert hook.has_happened


def committed_and_not_published(world: TransactionTable) -> str:
    """A write that died between its commit and its publication."""
    calm = TransactionTable()
    one = calm.writer(FaultPlan())
    one.write("f1")
    assert isinstance(one.storage, FaultyStorage)
    (number,) = (c.number for c in one.storage.calls if c.path.endswith(".commit"))
    dying = world.writer(FaultPlan((Fault(number, FaultKind.FAIL_BEFORE, is_fatal=True),)))
    with pytest.raises(Crashed):
        dying.write("f1")
    (instant,) = world.timeline().pending()
    return instant.requested


def test_a_committed_write_is_published_at_once_and_whole() -> None:
    world = TransactionTable()
    instant = committed_and_not_published(world)
    assert world.visible() == frozenset()
    (settled,) = recover_failed_instants(world.writer().context)
    assert (settled.instant, settled.repair) == (instant, Repair.ROLLED_FORWARD)
    assert not settled.is_late
    assert world.visible() == world.data_files()


def test_the_next_commit_publishes_it_as_well() -> None:
    world = TransactionTable()
    instant = committed_and_not_published(world)
    own = world.writer()
    attempt = own.begin()
    assert pending(world) == [attempt.instant]
    assert instant in {i.requested for i in world.timeline().completed()}


def test_a_publication_behind_later_ones_is_told() -> None:
    world = TransactionTable()
    committed_and_not_published(world)
    world.clock.advance(1_000)
    content = commit_payload.encode(CommitMetadata())
    world.storage.put(".hoodie/timeline/20231114221320800_20231114221320900.commit", content)
    (settled,) = recover_failed_instants(world.writer().context)
    assert settled.is_late


def test_plans_wait_for_whoever_carries_them_out() -> None:
    world = TransactionTable()
    content = compaction.encode_plan(compaction.CompactionPlan())
    plan = publish(world.writer().context, Action.COMPACTION, content, claims=False)
    world.clock.advance(DEAD_AFTER_MS)
    assert recover_failed_instants(writer(world, EAGER).context) == ()
    assert pending(world) == [plan.instant]


@pytest.mark.parametrize("size", [0, 10])
def test_a_plan_that_was_cut_short_long_ago_is_removed(size: int) -> None:
    world = TransactionTable()
    content = compaction.encode_plan(compaction.CompactionPlan())[:size]
    publish(world.writer().context, Action.COMPACTION, content, claims=False)
    assert recover_failed_instants(world.writer().context) == ()
    assert len(pending(world)) == 1
    world.clock.advance(DEAD_AFTER_MS)
    recover_failed_instants(world.writer().context)
    assert pending(world) == []
