"""The storage lock: Java's object, one owner, valid for as long as it says."""

import json
from collections.abc import Callable
from functools import partial

import pytest

from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.providers.port import Acquired, HeldBy, Unclear
from lakewarden.engine.locks.providers.storage_lock import LOCK_PATH, LockValidity, StorageLock
from lakewarden.engine.locks.table_lock import Patience, TableLock, open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, parse_plan
from lakewarden.engine.testing.faults import FaultyStorage
from tests.engine.locks.lock_setup import LockSetup
from tests.engine.locks.turns import Turns

# Java's own clients read and write exactly these fields.
JAVAS = {"expired": False, "validUntil": 0, "owner": "0a1b2c3d-java"}
LockOf = Callable[..., StorageLock]


@pytest.fixture
def world() -> LockSetup:
    return LockSetup()


@pytest.fixture
def storage(world: LockSetup) -> Storage:
    return fresh_memory_storage(clock=world.clock)


@pytest.fixture
def lock_of(world: LockSetup, storage: Storage) -> LockOf:
    """The lock as a process sees it, by the process's number."""

    def lock_of(pid: int, machine: str = "one") -> StorageLock:
        return StorageLock(storage, LockValidity(), world.ports(pid, machine))

    return lock_of


def java_takes(storage: Storage, valid_until: int, *, expired: bool = False) -> None:
    state = {**JAVAS, "validUntil": valid_until, "expired": expired}
    storage.put(LOCK_PATH, json.dumps(state).encode())


class TestOwnership:
    def test_one_at_a_time(self, lock_of: LockOf) -> None:
        first, second = lock_of(1), lock_of(2)
        assert first.try_acquire() == Acquired()
        assert isinstance(second.try_acquire(), HeldBy)
        assert (first.is_held(), second.is_held()) == (True, False)
        first.release()
        assert second.try_acquire() == Acquired()
        assert (first.is_held(), second.is_held()) == (False, True)

    def test_the_object_is_what_java_reads(
        self, world: LockSetup, storage: Storage, lock_of: LockOf
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        taken = json.loads(storage.read(LOCK_PATH))
        assert list(taken) == ["expired", "validUntil", "owner"]
        assert taken["expired"] is False
        assert taken["validUntil"] == world.clock.now_ms() + 300_000
        assert isinstance(taken["owner"], str)
        lock.release()
        assert json.loads(storage.read(LOCK_PATH)) == {**taken, "expired": True}

    def test_what_was_given_back_is_neither_held_nor_renewed_and_can_be_taken_again(
        self, lock_of: LockOf
    ) -> None:
        first, second = lock_of(1), lock_of(2)
        first.try_acquire()
        first.release()
        assert (first.is_held(), first.renew()) == (False, False)
        assert first.try_acquire() == Acquired()
        assert first.is_held()
        assert isinstance(second.try_acquire(), HeldBy)

    def test_a_lock_of_java_holds_for_as_long_as_it_says(
        self, world: LockSetup, storage: Storage, lock_of: LockOf
    ) -> None:
        java_takes(storage, world.clock.now_ms() + 10_000)
        answer = lock_of(1).try_acquire()
        assert isinstance(answer, HeldBy)
        assert "0a1b2c3d-java" in answer.holder.owner
        world.clock.advance(10_500)
        assert isinstance(lock_of(1).try_acquire(), HeldBy)
        world.clock.advance(1)
        assert lock_of(1).try_acquire() == Acquired()

    def test_a_lock_that_java_gave_back_is_free(
        self, world: LockSetup, storage: Storage, lock_of: LockOf
    ) -> None:
        java_takes(storage, world.clock.now_ms() + 10_000, expired=True)
        assert lock_of(1).holder() is None
        assert lock_of(1).try_acquire() == Acquired()

    def test_somebody_elses_lock_is_neither_renewed_nor_released(
        self, world: LockSetup, storage: Storage, lock_of: LockOf
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        java_takes(storage, world.clock.now_ms() + 10_000)
        theirs = storage.read(LOCK_PATH)
        assert not lock.renew()
        lock.release()
        assert storage.read(LOCK_PATH) == theirs

    def test_who_never_had_it_gives_nothing_back(self, storage: Storage, lock_of: LockOf) -> None:
        lock_of(1).release()
        assert storage.walk("") == ()

    def test_the_holder_is_named(self, world: LockSetup, lock_of: LockOf) -> None:
        lock_of(1).try_acquire()
        holder = lock_of(2).holder()
        assert holder is not None
        assert "process 1 on host-one" in holder.owner
        assert holder.since_ms == world.clock.now_ms()

    def test_a_broken_object_is_named(self, storage: Storage, lock_of: LockOf) -> None:
        storage.put(LOCK_PATH, b"{")
        with pytest.raises(CorruptTable, match=LOCK_PATH):
            lock_of(1).try_acquire()

    @pytest.mark.parametrize("seed", range(200))
    def test_a_free_lock_goes_to_one_of_many(self, seed: int) -> None:
        world = LockSetup()
        storage = fresh_memory_storage(clock=world.clock)
        java_takes(storage, 0, expired=bool(seed % 2))
        turns = Turns(seed)
        shared = turns.storage(storage)
        locks = [StorageLock(shared, LockValidity(), world.ports(pid)) for pid in (1, 2, 3)]
        answers = turns.run([lock.try_acquire for lock in locks])
        assert answers.count(Acquired()) == 1
        held = [turns.alone(lock.is_held) for lock in locks]
        assert held == [answer == Acquired() for answer in answers]


class TestTime:
    def test_a_renewed_lock_stays(self, world: LockSetup, lock_of: LockOf) -> None:
        first, second = lock_of(1), lock_of(2)
        first.try_acquire()
        for _ in range(20):
            world.clock.advance(30_000)
            assert first.renew()
        assert first.is_held()
        assert isinstance(second.try_acquire(), HeldBy)

    def test_it_counts_as_lost_before_others_may_take_it(
        self, world: LockSetup, lock_of: LockOf
    ) -> None:
        first, second = lock_of(1), lock_of(2)
        first.try_acquire()
        world.clock.advance(299_500)
        assert first.is_held()
        world.clock.advance(1)
        assert not first.is_held()
        assert isinstance(second.try_acquire(), HeldBy)

    def test_a_late_renewal_of_a_lock_that_nobody_took_is_in_time(
        self, world: LockSetup, lock_of: LockOf
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        world.clock.advance(400_000)
        assert lock.renew()
        assert lock.is_held()

    def test_a_dead_process_of_this_machine_holds_nothing(
        self, world: LockSetup, lock_of: LockOf
    ) -> None:
        lock_of(1).try_acquire()
        world.dead.add(1)
        assert isinstance(lock_of(2, "other").try_acquire(), HeldBy)
        assert lock_of(2).try_acquire() == Acquired()


class TestRequests:
    def test_a_lock_that_was_there_is_taken_and_given_back_by_three(
        self, world: LockSetup, storage: Storage
    ) -> None:
        counted = FaultyStorage(storage, FaultPlan())
        for pid in (1, 2):
            before = len(counted.calls)
            lock = StorageLock(counted, LockValidity(), world.ports(pid))
            assert lock.try_acquire() == Acquired()
            lock.release()
        made = [call.operation for call in counted.calls[before:]]
        assert made == ["read_versioned", "replace_if", "replace_if"]

    def test_one_that_was_lost_meanwhile_is_not_given_back(
        self, world: LockSetup, storage: Storage, lock_of: LockOf
    ) -> None:
        lock_of(1).try_acquire()
        world.dead.add(1)
        lock = lock_of(2)
        assert lock.try_acquire() == Acquired()
        java_takes(storage, world.clock.now_ms() + 1_000)
        lock.release()
        assert not json.loads(storage.read(LOCK_PATH))["expired"]


class TestFaults:
    @pytest.mark.parametrize("call", [2, 4])
    def test_an_answer_that_got_lost_is_found_again(
        self, world: LockSetup, storage: Storage, call: int
    ) -> None:
        faulty = FaultyStorage(storage, parse_plan(f"{call}:lost_answer"))
        if call == 4:
            StorageLock(faulty, LockValidity(), world.ports(1)).try_acquire()
            world.dead.add(1)
        lock = StorageLock(faulty, LockValidity(), world.ports(2))
        assert isinstance(lock.try_acquire(), Unclear)
        assert lock.try_acquire() == Acquired()
        assert lock.is_held()

    def test_a_renewal_without_an_answer_is_no_loss(
        self, world: LockSetup, storage: Storage
    ) -> None:
        faulty = FaultyStorage(storage, parse_plan("4:lost_request"))
        ports = world.ports(1)
        lock = TableLock(partial(StorageLock, faulty, LockValidity(), ports), Patience(0), ports)
        with lock.hold() as held:
            world.clock.advance(30_000)
            world.background.tick()
            held.assert_held()


class TestOpening:
    def test_tables_on_s3_have_one(self, s3_location: Location) -> None:
        storage = open_storage(s3_location)
        lock = open_lock(storage, Settings(), Ports())
        assert lock.name == f"storage lock {storage.uri(LOCK_PATH)}"
        impatient = Settings.of(
            arguments={
                "hoodie.write.lock.wait_time_ms": 10,
                "hoodie.write.lock.client.num_retries": 0,
            }
        )
        with lock.hold() as held:
            held.assert_held()
            held.renew()
            held.assert_held()
            with pytest.raises(Conflict), open_lock(storage, impatient, Ports()).hold():
                pass
        with open_lock(storage, impatient, Ports()).hold() as held:
            held.assert_held()

    def test_a_local_table_cannot(self, world: LockSetup) -> None:
        settings = Settings.of(arguments={"hoodie.write.lock.provider": "StorageBasedLockProvider"})
        with pytest.raises(InvalidRequest, match="conditional writes") as caught:
            open_lock(open_storage(Location("/nowhere")), settings, world.ports(1))
        assert caught.value.code == "unsupported_lock_place"

    def test_too_few_renewals_are_refused(self, storage: Storage, world: LockSetup) -> None:
        settings = Settings.of(
            arguments={
                "hoodie.write.lock.provider": "storage",
                "hoodie.write.lock.storage.validity.timeout.secs": 60,
            }
        )
        with pytest.raises(InvalidRequest, match="10 times"):
            open_lock(storage, settings, world.ports(1))
