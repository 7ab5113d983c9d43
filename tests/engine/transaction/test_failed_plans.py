"""Failed plans: a lazy clean gives up cancellable ones whose time is over, and no others."""

from itertools import pairwise

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.heartbeats import standard_path
from lakewarden.engine.timeline.ledger.entries import Cancelled
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.recovery.failed_writes import Repair, recover_failed_instants
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Service
from lakewarden.engine.transaction.state.settings import ROLLBACK_DELAY_MINUTES
from tests.engine.transaction.just_before import LOCK_IN_A_FILE, JustBefore
from tests.engine.transaction.plans import SERVICES, published, started
from tests.engine.transaction.transaction_table import DEAD_AFTER_MS, TransactionTable

MINUTE_MS = 60_000
LAZY = {"hoodie__clean__failed__writes__policy": "LAZY"}
EAGER = {"hoodie__clean__failed__writes__policy": "EAGER"}
NEVER = {"hoodie__clean__failed__writes__policy": "NEVER"}
DELAY = {"hoodie__table_service_rollback_delay": "10"}
AT_ONCE = {"table_service_rollback_delay": "0"}


def cleaned(world: TransactionTable, **settings: str) -> list[str]:
    """What a clean gives up."""
    found = recover_failed_instants(world.writer(**settings).context, with_plans=True)
    assert all(one.repair is Repair.ROLLED_BACK for one in found)
    return [one.instant for one in found]


def pending(world: TransactionTable) -> list[str]:
    return [instant.requested for instant in world.timeline().pending()]


@pytest.mark.parametrize("service", SERVICES)
def test_a_plan_that_nobody_has_begun_is_given_up_when_it_is_old_enough(service: Service) -> None:
    world = TransactionTable()
    plan = published(world, service)
    world.clock.advance(10 * MINUTE_MS - 1)
    assert cleaned(world, **LAZY, **DELAY) == []
    world.clock.advance(1)
    assert cleaned(world, **LAZY, **DELAY) == [plan]
    assert pending(world) == []
    end = read_ledger(world.storage, plan).last
    assert isinstance(end, Cancelled)
    assert end.partitions == ("p=a", "p=b")
    assert "No worker has started" in end.reason


def test_without_a_delay_it_is_given_up_at_once() -> None:
    world = TransactionTable()
    plan = published(world)
    assert cleaned(world, **LAZY, **AT_ONCE) == [plan]


def test_by_default_a_plan_has_two_days_to_be_begun_with() -> None:
    world = TransactionTable()
    plan = published(world)
    world.clock.advance(2 * 24 * 60 * MINUTE_MS - 1)
    assert cleaned(world, **LAZY) == []
    world.clock.advance(1)
    assert cleaned(world, **LAZY) == [plan]
    assert ROLLBACK_DELAY_MINUTES.key == "lakewarden.table_service_rollback_delay"


@pytest.mark.parametrize("policy", [LAZY, EAGER])
def test_a_plan_that_was_begun_and_left_is_given_up_at_once(policy: dict[str, str]) -> None:
    world = TransactionTable()
    plan = published(world)
    dead = world.writer()
    dead.write_file(started(dead, plan), "f1")
    assert cleaned(world, **policy) == []
    world.clock.advance(DEAD_AFTER_MS)
    assert cleaned(world, **policy) == [plan]
    assert world.data_files() == frozenset()


def test_a_live_attempt_is_left_alone_however_old_its_plan_is() -> None:
    world = TransactionTable()
    plan = published(world)
    world.clock.advance(60 * MINUTE_MS)
    started(world.writer(), plan)
    assert cleaned(world, **LAZY, **AT_ONCE) == []
    assert pending(world) == [plan]


@pytest.mark.parametrize("policy", [EAGER, NEVER, {}])
def test_only_the_lazy_policy_gives_up_what_nobody_has_begun(policy: dict[str, str]) -> None:
    world = TransactionTable()
    published(world)
    assert cleaned(world, **policy, **AT_ONCE) == []


def test_the_policy_may_keep_what_was_begun_and_left() -> None:
    world = TransactionTable()
    started(world.writer(), published(world))
    world.clock.advance(DEAD_AFTER_MS)
    assert cleaned(world, **NEVER, **AT_ONCE) == []


@pytest.mark.parametrize("service", SERVICES)
def test_an_immutable_plan_is_never_given_up(service: Service) -> None:
    world = TransactionTable()
    waiting = published(world, service, cancellable=False)
    left = published(world, service, cancellable=False)
    started(world.writer(), left)
    world.clock.advance(60 * 24 * 60 * MINUTE_MS)
    assert cleaned(world, **LAZY, **AT_ONCE) == []
    assert pending(world) == [waiting, left]


def test_a_write_gives_no_plan_up() -> None:
    world = TransactionTable()
    waiting, left = published(world), published(world)
    started(world.writer(), left)
    world.clock.advance(60 * 24 * 60 * MINUTE_MS)
    assert recover_failed_instants(world.writer(**LAZY, **AT_ONCE).context) == ()
    assert pending(world) == [waiting, left]


def test_an_inflight_plan_without_a_claim_has_the_time_of_one_that_waits() -> None:
    """Java has started with it, and Java may sends no heartbeat for a clustering."""
    world = TransactionTable()
    plan = published(world, Service.CLUSTERING)
    world.clock.advance(60 * MINUTE_MS)
    world.storage.put(f".hoodie/timeline/{plan}.clustering.inflight", b"")
    world.clock.advance(10 * MINUTE_MS - 1)
    assert cleaned(world, **LAZY, **DELAY) == []
    world.clock.advance(1)
    assert cleaned(world, **LAZY, **DELAY) == [plan]


def test_a_sign_of_life_by_java_keeps_a_plan() -> None:
    world = TransactionTable()
    plan = published(world)
    world.storage.put(standard_path(plan), b"")
    assert cleaned(world, **LAZY, **AT_ONCE) == []


def test_each_plan_is_given_up_in_a_lock_of_its_own() -> None:
    world = TransactionTable()
    plans = {published(world) for _ in range(3)}
    world.clock.advance(MINUTE_MS)
    own = world.writer(FaultPlan(), **LOCK_IN_A_FILE, **LAZY, **AT_ONCE)
    assert {one.instant for one in recover_failed_instants(own.context, with_plans=True)} == plans
    assert isinstance(own.storage, FaultyStorage)
    steps = [(call.operation, call.path) for call in own.storage.calls]
    cancels = [
        steps.index(("create_exclusive", f".hoodie/.lakewarden/ledger/{plan}/000001.json"))
        for plan in sorted(plans)
    ]
    releases = [number for number, step in enumerate(steps) if step == ("delete", ".hoodie/lock")]
    for first, second in pairwise(cancels):
        assert any(first < release < second for release in releases)


def test_whoever_begins_while_a_clean_looks_is_left_alone() -> None:
    """A plan that is claimed between the look and the lock is not given up."""
    world = TransactionTable()
    plan = published(world)

    def storage(inner: Storage) -> JustBefore:
        return JustBefore(inner, world.clock, lambda: started(world.writer(), plan))

    own = world.writer(storage=storage, **LOCK_IN_A_FILE, **LAZY, **AT_ONCE)
    assert recover_failed_instants(own.context, with_plans=True) == ()
    assert isinstance(own.storage, JustBefore)
    assert own.storage.has_done_it
    assert pending(world) == [plan]


def test_a_plan_that_is_given_up_is_not_begun_any_more() -> None:
    world = TransactionTable()
    plan = published(world)
    assert cleaned(world, **LAZY, **AT_ONCE) == [plan]
    with pytest.raises(InvalidRequest) as raised:
        start(world.writer().context, plan)
    assert raised.value.code == "unknown_plan"
