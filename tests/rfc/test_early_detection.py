"""Early conflict detection: a write that is going to lose stops before its first file.

The RFC's story, with real writes on a table in memory: one stands still with fresh heartbeats after
it has announced its file groups, or another one acts at one of its calls.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from lakewarden.engine.detection.rivals import GAVE_WAY
from lakewarden.engine.detection.strategies import Strategy
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, Unavailable
from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, TableService, schedule
from lakewarden.engine.storage.port import Storage, unavailable
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import INGESTION, PlanScope
from lakewarden.engine.write import operations
from lakewarden.engine.write.request import WriteRequest
from lakewarden.engine.write.writer import TableWriter
from tests.engine.services.service_table import (
    COW,
    MOR,
    ServiceWorld,
    inserted,
    new_service_world,
    row,
    rows,
    updated,
)
from tests.engine.transaction.hooked import Hook
from tests.rfc.live_writes import LiveWrite, standing_write
from tests.rfc.plans import PAUSE_MS
from tests.writing.model import Write
from tests.writing.shapes import Shape

SEVERAL = {"hoodie__write__concurrency__mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
ON = {**SEVERAL, "hoodie__write__concurrency__early__conflict__detection__enable": "true"}
STRATEGY = "hoodie__write__concurrency__early__conflict__detection__strategy"
RETRIES = "hoodie__write__num__retries__on__conflict__failures"
SHAPES = [COW, MOR]
LOCK_FREE = [one for one in Strategy if one is not Strategy.TRANSACTIONAL]


def upsert(*keys: str, partition: str = "a", ts: int = 5) -> WriteRequest:
    return operations.upsert(Write("upsert", rows(keys, ts, partition)).table())


def writes(world: ServiceWorld, request: WriteRequest, **options: object) -> str:
    """Another process writes; the code of its error, or that it has committed."""
    return tried(partial(TableWriter(world.context(62, **options)).write, request))


def tried(write: Callable[[], object]) -> str:
    try:
        write()
    except Conflict as error:
        return error.code
    return "committed"


def data_files(world: ServiceWorld) -> int:
    paths = (entry.path for entry in world.storage.walk(""))
    outside = (path for path in paths if not path.startswith(".hoodie/"))
    return sum(path.endswith(".parquet") or ".log." in path for path in outside)


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_small_write_stops_before_its_first_file_and_the_large_one_commits(
    shape: Shape, strategy: Strategy
) -> None:
    world = new_service_world(shape, inserted())
    options = {**ON, STRATEGY: strategy.value}
    answers: list[tuple[str, int]] = []

    def small_one() -> None:
        before = data_files(world)
        answers.append((writes(world, upsert("k2"), **options), data_files(world) - before))

    markers = [0]
    hook = OnFile(lambda: markers.__setitem__(0, markers[0] + 1) or small_one(), at=2)
    large = TableWriter(world.context(61, hook.storage(world.storage), **options))
    large.write(operations.upsert(updated(ts=4).table()))
    assert answers == [(GAVE_WAY, 0)]
    assert {one["ts"] for one in world.rows()} == {4}
    assert world.strays() == set()


class OnFile(Hook):
    """Something that happens when a write makes one of its data files."""

    def __init__(self, happening: Callable[[], object], *, at: int = 1) -> None:
        super().__init__(at, happening)

    def called(self, operation: str, arguments: tuple[object, ...]) -> None:
        is_file = operation in ("create", "put") and not str(arguments[0]).startswith(".hoodie/")
        if is_file and "." in str(arguments[0]).rpartition("/")[2].lstrip("."):
            super().called(operation, arguments)


@pytest.mark.parametrize("strategy", Strategy)
def test_the_large_write_stops_within_a_second_and_a_file_of_a_commit_on_its_groups(
    strategy: Strategy,
) -> None:
    groups = "abcdefgh"
    world = new_service_world(COW, inserted(8, partitions=groups))
    before = data_files(world)

    def small_one() -> None:
        assert writes(world, upsert("k5", partition="f"), **SEVERAL) == "committed"
        world.clock.advance(1_000)

    hook = OnFile(small_one, at=3)
    options = {**ON, STRATEGY: strategy.value}
    large = TableWriter(world.context(61, hook.storage(world.storage), **options))
    answer = tried(partial(large.write, operations.upsert(updated(8, partitions=groups).table())))
    assert answer == GAVE_WAY
    assert hook.calls == 3
    # That of the small one.
    assert data_files(world) == before + 1


def test_the_error_says_who_the_rival_is_and_what_to_do() -> None:
    world = new_service_world(COW, inserted())
    instant = standing_write(world, upsert("k0", "k2"), **ON)
    world.clock.advance(7_500)
    with pytest.raises(Conflict, match="Write again") as caught:
        TableWriter(world.context(62, **ON)).write(upsert("k0"))
    claim = read_ledger(world.storage, instant).last_claim
    assert claim is not None
    said = caught.value.parameters
    assert caught.value.code == GAVE_WAY
    assert (said["instant"], said["owner"], said["host"]) == (instant, claim.owner, claim.host)
    assert said["heartbeat_age_ms"] == 7_500
    assert said["partition"] == "p=a"
    assert len(cast(tuple[str, ...], said["file_groups"])) == said["conflicts"] == 1
    assert "its last heartbeat is 7.5 s old" in str(caught.value)


def test_who_gave_way_is_cancelled_and_leaves_nothing() -> None:
    world = new_service_world(MOR, inserted())
    standing_write(world, upsert("k0"), **ON)
    before = {entry.path for entry in world.storage.walk("")}
    assert writes(world, upsert("k0"), **ON) == GAVE_WAY
    left = {entry.path for entry in world.storage.walk("")} - before
    assert all(path.startswith((".hoodie/timeline/", ".hoodie/.lakewarden/")) for path in left)
    ledgers = [read_ledger(world.storage, path.split("/")[3]) for path in left if "ledger" in path]
    ended = {
        one.ends_in for one in ledgers if one.last_claim and one.last_claim.action in INGESTION
    }
    assert ended == {LedgerEnd.CANCELLED}


NO_RIVALS: dict[str, tuple[WriteRequest, WriteRequest]] = {
    "another partition": (upsert("k0"), upsert("k1", partition="b")),
    "a partition of a name alike": (upsert("x", partition="reg_a"), upsert("y", partition="reg_b")),
    "new keys": (upsert("new"), upsert("newer")),
}


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("name", NO_RIVALS)
def test_writes_to_other_file_groups_are_no_rivals(name: str, strategy: Strategy) -> None:
    options = {**ON, STRATEGY: strategy.value, "hoodie__parquet__small__file__limit": "0"}
    first = Write("upsert", (row("x", 1, "reg_a"), row("y", 1, "reg_b")))
    world = new_service_world(COW, inserted(), first)
    standing, other = NO_RIVALS[name]
    standing_write(world, standing, **options)
    assert writes(world, other, **options) == "committed"


@pytest.mark.parametrize("strategy", Strategy)
def test_a_dead_write_is_no_rival(strategy: Strategy) -> None:
    options = {**ON, STRATEGY: strategy.value}
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **options)
    world.clock.advance(PAUSE_MS)
    assert writes(world, upsert("k0"), **options) == "committed"


@pytest.mark.parametrize("strategy", Strategy)
def test_a_write_that_dies_while_another_one_prepares_is_no_rival(strategy: Strategy) -> None:
    options = {**ON, STRATEGY: strategy.value}
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **options)
    # It looks alive when the other one recovers what is dead, and not any more when that looks.
    hook = OnCreated(".commit.requested", partial(world.clock.advance, PAUSE_MS))
    writer = TableWriter(world.context(62, hook.storage(world.storage), **options))
    assert tried(partial(writer.write, upsert("k0"))) == "committed"
    assert hook.has_happened


class OnCreated(Hook):
    """Something that happens when a write has come so far on the timeline."""

    def __init__(self, ending: str, happening: Callable[[], object]) -> None:
        super().__init__(1, happening)
        self._ending = ending

    def called(self, operation: str, arguments: tuple[object, ...]) -> None:
        if operation == "create_exclusive" and str(arguments[0]).endswith(self._ending):
            super().called(operation, arguments)


@pytest.mark.parametrize("strategy", LOCK_FREE)
def test_of_two_that_announce_at_once_the_younger_one_sees_the_older(strategy: Strategy) -> None:
    world = new_service_world(COW, inserted())
    older = LiveWrite(world)
    hook = OnCreated(".inflight", older.announce)
    options = {**ON, STRATEGY: strategy.value}
    younger = TableWriter(world.context(62, hook.storage(world.storage), **options))
    before = data_files(world)
    assert tried(partial(younger.write, upsert("k0"))) == GAVE_WAY
    assert data_files(world) == before


@pytest.mark.parametrize("strategy", Strategy)
def test_a_write_that_was_cancelled_and_is_not_tidied_up_is_no_rival(strategy: Strategy) -> None:
    options = {**ON, STRATEGY: strategy.value}
    world = new_service_world(COW, inserted())
    instant = standing_write(world, upsert("k0"), **options)
    ledger = read_ledger(world.storage, instant)
    claim = ledger.last_claim
    assert claim is not None
    append_cancelled(world.context(63), ledger, claim.action, PlanScope(), reason="it gave way")
    assert writes(world, upsert("k0"), **options) == "committed"


def test_a_write_that_takes_no_part_is_a_rival_of_those_that_do() -> None:
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **SEVERAL)
    assert writes(world, upsert("k0"), **ON) == GAVE_WAY


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_overwrite_is_a_rival_of_an_upsert_in_its_partition(shape: Shape) -> None:
    world = new_service_world(shape, inserted())
    overwrite = operations.overwrite(Write("upsert", rows(("k0",), 9)).table())
    standing_write(world, overwrite, **ON)
    assert writes(world, upsert("k2"), **ON) == GAVE_WAY


@pytest.mark.parametrize("shape", [replace(COW, index="BUCKET"), replace(MOR, index="BUCKET")])
def test_writes_that_begin_one_bucket_are_rivals(shape: Shape) -> None:
    world = new_service_world(shape, inserted(partitions="b"))
    keys = tuple(f"k{number}" for number in range(8))
    standing_write(world, upsert(*keys), **ON)
    assert writes(world, upsert(*keys), **ON) == GAVE_WAY


@pytest.mark.parametrize("strategy", Strategy)
def test_buckets_of_one_number_in_two_partitions_are_no_rivals(strategy: Strategy) -> None:
    options = {**ON, STRATEGY: strategy.value}
    world = new_service_world(replace(COW, index="BUCKET"), inserted(partitions="ab"))
    keys = tuple(f"k{number}" for number in range(8))
    standing_write(world, upsert(*keys, partition="a"), **options)
    assert writes(world, upsert(*keys, partition="b"), **options) == "committed"


class OutOfReach:
    """A storage that does not give the inflight file of another write, as often as is said."""

    def __init__(self, inner: Storage, path: str, times: int) -> None:
        self._inner, self._path, self.left = inner, path, times

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        return partial(self._called, found) if name.startswith("read") else found

    def _called(self, found: Callable[..., object], path: str) -> object:
        if path == self._path and self.left:
            self.left -= 1
            raise unavailable("read", path, "It is out of reach.")
        return found(path)


def test_a_look_that_fails_is_reported_and_the_write_goes_on_and_looks_again() -> None:
    world = new_service_world(COW, inserted(8, partitions="abcd"))
    standing = standing_write(world, upsert("k3", partition="d"), **ON)
    events = EventLog()
    stage = OutOfReach(world.storage, f".hoodie/timeline/{standing}.inflight", 1)
    hook = OnFile(partial(world.clock.advance, 1_000))
    context = world.context(62, hook.storage(cast(Storage, stage)), **ON)
    context = replace(context, ports=replace(context.ports, events=events))
    request = operations.upsert(updated(8, partitions="abcd").table())
    assert tried(partial(TableWriter(context).write, request)) == GAVE_WAY
    assert stage.left == 0
    assert len(events.named("early_look_failed")) == 1
    assert hook.calls == 1


PLANS: list[tuple[TableService, Shape]] = [(CLUSTERING, COW), (CLUSTERING, MOR)]
SINGLE = {"hoodie__clustering__plan__strategy__single__group__clustering__enabled": "true"}


@pytest.mark.parametrize(("service", "shape"), PLANS)
@pytest.mark.parametrize(("options", "code"), [(ON, GAVE_WAY), (SEVERAL, "write_conflict")])
def test_a_write_stops_at_a_plan_that_does_not_give_way(
    service: TableService, shape: Shape, options: dict[str, str], code: str
) -> None:
    world = new_service_world(shape, inserted())
    request = PlanRequest(cancellable=False)
    assert isinstance(schedule(world.context(**SINGLE), service, request), Scheduled)
    before = data_files(world)
    hook = OnFile(lambda: None)
    writer = TableWriter(world.context(62, hook.storage(world.storage), **options))
    assert tried(partial(writer.write, upsert("k0"))) == code
    assert (hook.calls, data_files(world)) == (0, before)


def test_a_write_that_appends_passes_beside_a_compaction() -> None:
    world = new_service_world(MOR, inserted(), updated())
    request = PlanRequest(cancellable=False)
    assert isinstance(schedule(world.context(), COMPACTION, request), Scheduled)
    assert writes(world, upsert("k0"), **ON) == "committed"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_cancellable_plan_stops_within_a_file_of_a_live_write(shape: Shape) -> None:
    groups = "abcdef"
    world = new_service_world(shape, inserted(6, partitions=groups))
    scheduled = schedule(world.context(**SINGLE), CLUSTERING, PlanRequest(cancellable=True))
    assert isinstance(scheduled, Scheduled)
    before = data_files(world)

    def write() -> None:
        standing_write(world, upsert("k5", partition="f"), **SEVERAL)
        world.clock.advance(1_000)

    hook = OnFile(write, at=2)
    context = world.context(70, hook.storage(world.storage), **SINGLE)
    assert tried(partial(execute, context, CLUSTERING, scheduled.instant)) == "plan_conflict"
    assert hook.calls == 2
    assert data_files(world) == before


class Eventful(ManualClock):
    """A clock on which something happens when somebody waits."""

    def __init__(self, clock: ManualClock, happening: Callable[[], object]) -> None:
        super().__init__()
        self._clock, self._happening, self.slept = clock, happening, 0.0

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def elapsed_seconds(self) -> float:
        return self._clock.elapsed_seconds()

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._clock.sleep(seconds)
        self._happening()


def retried(
    world: ServiceWorld, happening: Callable[[], object], **options: object
) -> tuple[str, float]:
    """A write that gives way and is tried again; what becomes of it, and how long it waited."""
    context = world.context(62, **ON, **{RETRIES: "1"}, **options)
    clock = Eventful(world.clock, happening)
    context = replace(context, ports=replace(context.ports, clock=clock))
    return tried(partial(TableWriter(context).write, upsert("k0"))), clock.slept


def test_a_retry_passes_as_soon_as_the_rival_has_ended() -> None:
    world = new_service_world(COW, inserted())
    standing = standing_write(world, upsert("k0"), **ON)
    ends = partial(cancel, world.context(63, **SEVERAL), standing, "in the way", force=True)
    answer, waited = retried(world, lambda: ends() if world_waited(world) else None)
    assert answer == "committed"
    assert waited < 5


def world_waited(world: ServiceWorld) -> bool:
    return bool(world.snapshot().timeline.active.pending())


def test_a_retry_waits_no_longer_than_the_heartbeat_of_the_rival() -> None:
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **ON)
    answer, waited = retried(world, lambda: None)
    assert answer == "committed"
    assert 119 <= waited <= 122


def test_a_retry_waits_no_longer_than_is_set() -> None:
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **ON)
    assert retried(world, lambda: None, lakewarden__early_conflict__wait_seconds="5") == (
        GAVE_WAY,
        5,
    )


def test_a_caller_can_cancel_the_wait() -> None:
    world = new_service_world(COW, inserted())
    standing_write(world, upsert("k0"), **ON)
    context = world.context(62, **ON, **{RETRIES: "1"})
    waited: list[int] = []
    clock = Eventful(world.clock, lambda: waited.append(1))

    def wanted() -> None:
        if waited:
            raise Unavailable("stopped", what="The caller went away.", why="", now="")

    context = replace(context, ports=replace(context.ports, clock=clock, check_wanted=wanted))
    with pytest.raises(Unavailable, match="went away"):
        TableWriter(context).write(upsert("k0"))
    assert waited == [1]
