"""The table lock: patient, renewed, given back whatever happens, and honest about being lost."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import Conflict, CorruptTable, InvalidRequest, Unavailable
from lakewarden.engine.kernel.events import log_event
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.providers.file_system import Expiry, FileSystemLock
from lakewarden.engine.locks.providers.port import Acquiring
from lakewarden.engine.locks.providers.storage_lock import (
    LOCK_PATH,
    LockValidity,
    StorageLock,
)
from lakewarden.engine.locks.table_lock import Patience, TableLock, open_lock
from lakewarden.engine.run.executor import ThreadBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan, parse_plan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.locks.lock_setup import LockSetup

LOCK = ".hoodie/lock"
FILE = {"hoodie.write.lock.provider": "file_system"}

LockOf = Callable[[Storage, Ports], TableLock]


@pytest.fixture
def world() -> LockSetup:
    return LockSetup()


@pytest.fixture
def storage(world: LockSetup) -> Storage:
    return fresh_memory_storage(clock=world.clock)


def lock_of(storage: Storage, ports: Ports, wait_seconds: float = 10.0) -> TableLock:
    provider = partial(FileSystemLock, storage, ".hoodie", Expiry(60.0), ports)
    return TableLock(provider, Patience(wait_seconds), ports)


def give_back(storage: Storage, world: LockSetup, after_ms: int) -> None:
    """Let the lock vanish once the clock has come that far."""
    due = world.clock.now_ms() + after_ms
    advance = world.clock.advance

    def advanced(milliseconds: int) -> None:
        advance(milliseconds)
        if world.clock.now_ms() >= due:
            storage.delete(LOCK)

    world.clock.advance = advanced  # type: ignore[method-assign]


class TestHolding:
    def test_the_lock_is_there_while_held_and_gone_after(
        self, world: LockSetup, storage: Storage
    ) -> None:
        with lock_of(storage, world.ports(1)).hold() as held:
            held.assert_held()
            assert storage.read_if_present(LOCK) is not None
        assert storage.read_if_present(LOCK) is None

    def test_it_is_given_back_after_an_exception(self, world: LockSetup, storage: Storage) -> None:
        with pytest.raises(RuntimeError), lock_of(storage, world.ports(1)).hold():
            raise RuntimeError
        assert storage.read_if_present(LOCK) is None

    def test_who_has_not_begun_waits_as_long_as_it_is_wanted(
        self, world: LockSetup, storage: Storage
    ) -> None:
        def never() -> None:
            raise InterruptedError

        ports = replace(world.ports(2), check_wanted=never)
        with lock_of(storage, world.ports(1)).hold():
            with pytest.raises(InterruptedError), lock_of(storage, ports).hold(while_wanted=True):
                pass
            with pytest.raises(Conflict), lock_of(storage, ports).hold():
                pass
        with lock_of(storage, ports).hold(while_wanted=True) as held:
            held.assert_held()

    def test_a_dead_process_gives_nothing_back(self, world: LockSetup, storage: Storage) -> None:
        plan = FaultPlan((Fault(3, FaultKind.FAIL_BEFORE, is_fatal=True),))
        faulty = FaultyStorage(storage, plan)
        with pytest.raises(Crashed), lock_of(faulty, world.ports(1)).hold():
            faulty.put("file", b"")
        assert storage.read_if_present(LOCK) is not None
        world.dead.add(1)
        with lock_of(storage, world.ports(2), wait_seconds=0).hold() as held:
            held.assert_held()

    def test_a_failing_release_is_told_and_does_no_harm(
        self, world: LockSetup, storage: Storage
    ) -> None:
        faulty = FaultyStorage(storage, parse_plan("3:fail_before"))
        with lock_of(faulty, world.ports(1)).hold():
            pass
        assert [event.name for event in world.events.events] == ["lock_not_released"]

    def test_the_holder_is_shown(self, world: LockSetup, storage: Storage) -> None:
        lock = lock_of(storage, world.ports(1))
        assert lock.holder() is None
        with lock.hold():
            holder = lock.holder()
        assert holder is not None
        assert "process 1" in holder.owner

    def test_threads_take_turns(self, tmp_path: Path) -> None:
        storage = open_storage(Location(str(tmp_path), {"durable": False}))
        lock = open_lock(storage, Settings(), Ports())
        counts = {"now": 0, "most": 0, "all": 0}

        def work(_: int) -> None:
            with lock.hold() as held:
                counts["now"] += 1
                counts["most"] = max(counts["most"], counts["now"])
                held.assert_held()
                counts["all"] += 1
                counts["now"] -= 1

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(40)))
        assert counts == {"now": 0, "most": 1, "all": 40}
        assert storage.read_if_present(LOCK) is None


class TestWaiting:
    def test_a_lock_that_comes_free_is_taken_soon(self, world: LockSetup, storage: Storage) -> None:
        storage.put(LOCK, b"")
        give_back(storage, world, after_ms=1_000)
        began = world.clock.now_ms()
        with lock_of(storage, world.ports(1)).hold():
            waited_ms = world.clock.now_ms() - began
        assert 1_000 <= waited_ms <= 1_200

    def test_a_long_wait_looks_seldom(self, world: LockSetup, storage: Storage) -> None:
        storage.put(LOCK, b"")
        faulty = FaultyStorage(storage)
        with pytest.raises(Conflict), lock_of(faulty, world.ports(1), wait_seconds=250).hold():
            pass
        assert len(faulty.calls) < 1_000

    def test_giving_up_names_owner_age_place_and_remedy(
        self, world: LockSetup, storage: Storage
    ) -> None:
        with lock_of(storage, world.ports(1)).hold():
            world.clock.advance(3_000)
            with pytest.raises(Conflict) as caught, lock_of(storage, world.ports(2)).hold():
                pass
        assert caught.value.code == "lock_held"
        for word in ("process 1 on host-one", "13.0 s", LOCK, "10.0 s", "hoodie.write.lock."):
            assert word in str(caught.value)

    def test_without_patience_there_is_one_try(self, world: LockSetup, storage: Storage) -> None:
        storage.put(LOCK, b"")
        faulty = FaultyStorage(storage)
        with pytest.raises(Conflict), lock_of(faulty, world.ports(1), wait_seconds=0).hold():
            pass
        operations = [call.operation for call in faulty.calls[:3]]
        assert operations == ["create_exclusive", "read_if_present", "stat"]

    def test_a_storage_out_of_reach_for_a_moment_is_waited_for(
        self, world: LockSetup, storage: Storage
    ) -> None:
        faulty = FaultyStorage(storage, parse_plan("1:fail_before 3:lost_answer"))
        with lock_of(faulty, world.ports(1)).hold() as held:
            held.assert_held()

    def test_a_storage_out_of_reach_for_good_is_named(
        self, world: LockSetup, storage: Storage
    ) -> None:
        faults = tuple(Fault(number, FaultKind.FAIL_BEFORE) for number in range(1, 2_000))
        faulty = FaultyStorage(storage, FaultPlan(faults))
        with pytest.raises(Unavailable) as caught, lock_of(faulty, world.ports(1)).hold():
            pass
        assert caught.value.code == "lock_unavailable"
        assert LOCK in str(caught.value)

    def test_what_is_denied_is_not_waited_for(self, world: LockSetup, storage: Storage) -> None:
        provider = Denied(storage, ".hoodie", Expiry(60.0), world.ports(1))
        lock = TableLock(lambda: provider, Patience(60.0), world.ports(1))
        with pytest.raises(Unavailable) as caught, lock.hold():
            pass
        assert caught.value.code == "storage_denied"
        assert provider.tries == 1


class Denied(FileSystemLock):
    """A lock in a place where nobody may write."""

    tries = 0

    def try_acquire(self) -> Acquiring:
        self.tries += 1
        raise Unavailable("storage_denied", what="It is denied.", why="No right.", now="Ask.")


class TestLosing:
    def test_a_lock_in_other_hands_is_lost(self, world: LockSetup, storage: Storage) -> None:
        with lock_of(storage, world.ports(1)).hold() as held:
            storage.put(LOCK, b"another")
            with pytest.raises(Conflict) as caught:
                held.assert_held()
        assert caught.value.code == "lock_lost"
        assert LOCK in str(caught.value)
        assert storage.read(LOCK) == b"another"

    def test_it_is_renewed_in_the_background(self, world: LockSetup, storage: Storage) -> None:
        with lock_of(storage, world.ports(1)).hold() as held:
            for _ in range(10):
                world.clock.advance(15_000)
                world.background.tick()
            with pytest.raises(Conflict), lock_of(storage, world.ports(2)).hold():
                pass
            held.assert_held()

    def test_a_renewal_that_finds_it_lost_is_remembered(
        self, world: LockSetup, storage: Storage
    ) -> None:
        with lock_of(storage, world.ports(1)).hold() as held:
            mine = storage.read(LOCK)
            storage.delete(LOCK)
            world.background.tick()
            storage.put(LOCK, mine)
            with pytest.raises(Conflict):
                held.assert_held()

    def test_a_renewal_out_of_reach_is_no_loss(self, world: LockSetup, storage: Storage) -> None:
        faulty = FaultyStorage(storage, parse_plan("3:fail_before"))
        with lock_of(faulty, world.ports(1)).hold() as held:
            world.background.tick()
            held.assert_held()

    def test_nothing_is_renewed_after_the_end(self, world: LockSetup, storage: Storage) -> None:
        with lock_of(storage, world.ports(1)).hold():
            pass
        storage.put(LOCK, b"another")
        modified = storage.stat(LOCK)
        world.clock.advance(15_000)
        world.background.tick()
        assert storage.stat(LOCK) == modified

    def test_a_short_hold_starts_no_thread_of_its_own(
        self, world: LockSetup, storage: Storage
    ) -> None:
        ports = replace(world.ports(1), background=ThreadBackground())
        with lock_of(storage, ports).hold():
            # One may wait for the renewals of all.
            before = threading.active_count()
        for _ in range(3):
            with lock_of(storage, ports).hold():
                assert threading.active_count() <= before


class TestOpening:
    def test_a_local_table_has_a_lock_file(self, tmp_path: Path, world: LockSetup) -> None:
        storage = open_storage(Location(str(tmp_path)))
        with open_lock(storage, Settings(), world.ports(1)).hold():
            assert (tmp_path / LOCK).exists()
        assert not (tmp_path / LOCK).exists()

    def test_a_table_in_memory_is_locked_in_the_process(
        self, storage: Storage, world: LockSetup
    ) -> None:
        lock = open_lock(storage, Settings(), world.ports(1))
        assert lock.name.startswith("in-process lock")

    @pytest.mark.parametrize(
        "provider",
        [
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
            "FileSystemBasedLockProvider",
            "FileSystem",
            "file_system",
        ],
    )
    def test_a_provider_has_many_names(
        self, storage: Storage, world: LockSetup, provider: str
    ) -> None:
        settings = Settings.of(arguments={"hoodie.write.lock.provider": provider})
        assert open_lock(storage, settings, world.ports(1)).name.endswith(LOCK)

    def test_the_folder_of_the_lock_file_can_be_set(self, tmp_path: Path, world: LockSetup) -> None:
        storage = open_storage(Location(str(tmp_path / "table")))
        folder = tmp_path / "locks"
        settings = Settings.of(arguments={"hoodie.write.lock.filesystem.path": str(folder)})
        with open_lock(storage, settings, world.ports(1)).hold():
            assert (folder / "lock").exists()

    def test_a_table_does_not_lead_its_lock_out_of_its_folder(
        self, tmp_path: Path, world: LockSetup
    ) -> None:
        place = tmp_path / "table"
        storage = open_storage(Location(str(place)))
        for folder in (tmp_path / "locks", f"{place}/../locks", f"{place}s", "locks"):
            settings = Settings.of(table={"hoodie.write.lock.filesystem.path": str(folder)})
            with pytest.raises(CorruptTable, match=r"hoodie\.properties") as caught:
                open_lock(storage, settings, world.ports(1))
            assert caught.value.code == "path_outside_table"
        assert not list(tmp_path.glob("lock*"))
        inside = {"hoodie.write.lock.filesystem.path": f"{place}/.hoodie/.locks"}
        with open_lock(storage, Settings.of(table=inside), world.ports(1)).hold():
            assert (place / ".hoodie/.locks/lock").exists()

    def test_the_patience_is_that_of_the_settings(self, storage: Storage, world: LockSetup) -> None:
        storage.put(LOCK, b"")
        patience = {
            "hoodie.write.lock.wait_time_ms": 1_000,
            "hoodie.write.lock.client.num_retries": 2,
            "hoodie.write.lock.client.wait_time_ms_between_retry": 500,
        }
        settings = Settings.of(arguments={**FILE, **patience})
        with pytest.raises(Conflict), open_lock(storage, settings, world.ports(1)).hold():
            pass
        assert world.clock.elapsed_seconds() == pytest.approx(1.0, abs=0.01)

    @pytest.mark.parametrize(
        "provider",
        [
            "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
            "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            "com.example.OwnLock",
        ],
    )
    def test_other_providers_are_refused_by_name(
        self, storage: Storage, world: LockSetup, provider: str
    ) -> None:
        settings = Settings.of(arguments={"hoodie.write.lock.provider": provider})
        with pytest.raises(InvalidRequest, match=provider) as caught:
            open_lock(storage, settings, world.ports(1))
        assert caught.value.code == "unsupported_lock_provider"


class TestOutages:
    """A server that fails while a lock is given back makes no process wait once it is back."""

    def storage_lock(self, storage: Storage, ports: Ports, wait_seconds: float = 5.0) -> TableLock:
        provider = partial(StorageLock, storage, LockValidity(), ports)
        return TableLock(provider, Patience(wait_seconds), ports)

    def left(self, storage: Storage, world: LockSetup, lock: LockOf) -> None:
        """Hold the lock, and fail to give it back."""
        faulty = FaultyStorage(storage, FaultPlan(), world.clock)
        with lock(faulty, world.ports(1)).hold():
            made = len(faulty.calls)
        fault = Fault(made + 1, FaultKind.FAIL_BEFORE)
        faulty = FaultyStorage(storage, FaultPlan((fault,)), world.clock)
        with lock(faulty, world.ports(1)).hold():
            pass
        assert [event.name for event in world.events.events] == ["lock_not_released"]

    def test_the_process_that_left_a_storage_lock_takes_it_at_once(
        self, world: LockSetup, storage: Storage
    ) -> None:
        self.left(storage, world, self.storage_lock)
        before = world.clock.now_ms()
        with self.storage_lock(storage, world.ports(1)).hold() as held:
            held.assert_held()
        assert world.clock.now_ms() - before < 100

    def test_a_storage_lock_is_given_back_in_the_background(
        self, world: LockSetup, storage: Storage
    ) -> None:
        self.left(storage, world, self.storage_lock)
        assert b'"expired":false' in storage.read(LOCK_PATH).replace(b" ", b"")
        world.background.tick()
        assert b'"expired":true' in storage.read(LOCK_PATH).replace(b" ", b"")

    def test_a_lock_file_is_given_back_in_the_background(
        self, world: LockSetup, storage: Storage
    ) -> None:
        self.left(storage, world, lock_of)
        assert storage.read_if_present(LOCK) is not None
        world.background.tick()
        assert storage.read_if_present(LOCK) is None

    def test_who_waits_says_for_whom_and_since_when(
        self, world: LockSetup, storage: Storage, caplog: pytest.LogCaptureFixture
    ) -> None:
        waiting = self.storage_lock(storage, world.ports(2), wait_seconds=9.0)
        with (
            self.storage_lock(storage, world.ports(1)).hold(),
            pytest.raises(Conflict) as caught,
            waiting.hold(),
        ):
            pytest.fail("The lock was held.")
        assert caught.value.code == "lock_held"
        assert "process 1 on host-one" in str(caught.value)
        for event in world.events.named("lock_waited"):
            log_event(event)
        said = [record.getMessage() for record in caplog.records if record.name == "lakewarden"]
        assert said
        assert all("process 1 on host-one" in one and "has held it for" in one for one in said)
