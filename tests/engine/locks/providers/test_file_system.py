"""The file system lock: one owner, no lock that stays for ever, no lock removed by mistake."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from lakewarden.engine.locks.providers.file_system import (
    LEFT_AFTER_MS,
    TICKETS_FOLDER,
    Expiry,
    FileSystemLock,
)
from lakewarden.engine.locks.providers.port import Acquired, HeldBy, Unclear, decode_note
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import StorageCall, crash_plans, parse_plan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.locks.lock_setup import LockSetup
from tests.engine.locks.turns import Turns
from tests.engine.transaction.hooked import Hook
from tests.engine.transaction.transaction_table import Ahead

LOCK = ".hoodie/lock"
EXPIRY = Expiry(60.0)


@pytest.fixture
def world() -> LockSetup:
    return LockSetup()


@pytest.fixture
def storage(world: LockSetup) -> Storage:
    return fresh_memory_storage(clock=world.clock)


@pytest.fixture
def lock_of(world: LockSetup, storage: Storage) -> Callable[..., FileSystemLock]:
    """The lock as a process sees it, by the process's number."""

    def lock_of(pid: int, machine: str = "one", expiry: Expiry = EXPIRY) -> FileSystemLock:
        return FileSystemLock(storage, ".hoodie", expiry, world.ports(pid, machine))

    return lock_of


def tickets(storage: Storage) -> str:
    """Where the tickets for breaking the present lock are."""
    note = decode_note(storage.read(LOCK), LOCK)
    assert note is not None
    return f".hoodie/{TICKETS_FOLDER}/{note.owner}"


class TestOwnership:
    def test_one_at_a_time(self, lock_of: Callable[..., FileSystemLock]) -> None:
        first, second = lock_of(1), lock_of(2)
        assert first.try_acquire() == Acquired()
        assert isinstance(second.try_acquire(), HeldBy)
        first.release()
        assert second.try_acquire() == Acquired()

    def test_the_holder_is_named(
        self, world: LockSetup, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        assert lock_of(1).holder() is None
        lock_of(1).try_acquire()
        holder = lock_of(2).holder()
        assert holder is not None
        assert "process 1 on host-one" in holder.owner
        assert holder.since_ms == world.clock.now_ms()
        answer = lock_of(2).try_acquire()
        assert isinstance(answer, HeldBy)
        assert "when its process ends" in answer.remedy

    def test_a_lock_of_java_holds(
        self, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        storage.put(LOCK, b"")
        answer = lock_of(1).try_acquire()
        assert isinstance(answer, HeldBy)
        assert "Java" in answer.holder.owner
        assert "never expires" in answer.remedy

    def test_somebody_elses_lock_is_not_released(
        self, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        storage.put(LOCK, b"")
        lock.release()
        assert storage.read(LOCK) == b""

    def test_a_lock_that_java_emptied_is_lost(
        self, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        assert lock.is_held()
        storage.put(LOCK, b"")
        assert not lock.is_held()
        assert not lock.renew()

    def test_after_its_release_a_lock_is_not_held(
        self, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock = lock_of(1)
        lock.try_acquire()
        lock.release()
        assert not lock.is_held()

    @pytest.mark.parametrize("fault", ["lost_answer", "lost_request"])
    def test_an_unclear_answer_is_cleared_up_by_trying_again(
        self, world: LockSetup, storage: Storage, fault: str
    ) -> None:
        faulty = FaultyStorage(storage, parse_plan(f"1:{fault}"))
        lock = FileSystemLock(faulty, ".hoodie", EXPIRY, world.ports(1))
        assert isinstance(lock.try_acquire(), Unclear)
        assert lock.try_acquire() == Acquired()
        assert lock.is_held()

    def test_an_unclear_lock_can_be_given_back(self, world: LockSetup, storage: Storage) -> None:
        faulty = FaultyStorage(storage, parse_plan("1:lost_answer"))
        lock = FileSystemLock(faulty, ".hoodie", EXPIRY, world.ports(1))
        lock.try_acquire()
        lock.release()
        assert storage.walk("") == ()


class TestStaleness:
    def test_a_dead_process_of_this_machine_holds_nothing(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock_of(1).try_acquire()
        world.dead.add(1)
        second = lock_of(2)
        assert second.try_acquire() == Acquired()
        assert [entry.path for entry in storage.walk("")] == [LOCK]
        assert [event.name for event in world.events.events] == ["stale_lock_broken"]

    def test_a_process_elsewhere_holds_until_it_expires(
        self, world: LockSetup, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock_of(1, "other").try_acquire()
        world.dead.add(1)
        second = lock_of(2)
        world.clock.advance(60_000)
        assert isinstance(second.try_acquire(), HeldBy)
        world.clock.advance(1)
        assert second.try_acquire() == Acquired()

    def test_a_renewed_lock_does_not_expire(
        self, world: LockSetup, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        first, second = lock_of(1), lock_of(2)
        first.try_acquire()
        for _ in range(10):
            world.clock.advance(round(first.renew_every_seconds * 1000))
            assert first.renew()
        assert isinstance(second.try_acquire(), HeldBy)
        assert first.is_held()

    def test_a_broken_lock_is_known_to_be_lost(
        self, world: LockSetup, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        first, second = lock_of(1), lock_of(2)
        first.try_acquire()
        world.clock.advance(61_000)
        second.try_acquire()
        assert not first.renew()
        assert not first.is_held()
        first.release()
        assert second.is_held()

    def test_a_lock_of_java_expires_by_its_setting_only(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        storage.put(LOCK, b"")
        world.clock.advance(24 * 3600 * 1000)
        assert isinstance(lock_of(1).try_acquire(), HeldBy)
        assert lock_of(1, expiry=Expiry(60.0, 600.0)).try_acquire() == Acquired()

    def test_a_young_lock_of_java_is_left_alone(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        storage.put(LOCK, b"")
        world.clock.advance(599_000)
        answer = lock_of(1, expiry=Expiry(60.0, 600.0)).try_acquire()
        assert isinstance(answer, HeldBy)
        assert "expires 600 s after" in answer.remedy

    def test_a_clock_that_runs_ahead_breaks_nothing(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        first = lock_of(1)
        first.try_acquire()
        ports = replace(world.ports(2), clock=Ahead(world.clock, 3_600_000))
        assert isinstance(FileSystemLock(storage, ".hoodie", EXPIRY, ports).try_acquire(), HeldBy)
        assert first.is_held()
        assert [entry.path for entry in storage.walk("")] == [LOCK]

    @pytest.mark.parametrize("is_renewed", [True, False])
    def test_a_lock_that_is_renewed_or_changes_hands_at_the_last_moment_is_not_broken(
        self,
        world: LockSetup,
        storage: Storage,
        lock_of: Callable[..., FileSystemLock],
        is_renewed: bool,
    ) -> None:
        first, third = lock_of(1), lock_of(3)
        first.try_acquire()
        world.clock.advance(60_001)

        def happens() -> None:
            if is_renewed:
                first.renew()
            else:
                first.release()
                third.try_acquire()

        # It was found stale, and the ticket for breaking it is to be taken.
        hook = Hook(1, happens, of=("list", tickets(storage)))
        second = FileSystemLock(hook.storage(storage), ".hoodie", EXPIRY, world.ports(2))
        assert isinstance(second.try_acquire(), HeldBy)
        assert (first.is_held(), third.is_held()) == (is_renewed, not is_renewed)

    def test_what_is_no_ticket_keeps_nobody_out(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        lock_of(1).try_acquire()
        world.dead.add(1)
        storage.put(f"{tickets(storage)}/000001.json.tmp", b"")
        assert lock_of(2).try_acquire() == Acquired()

    def test_renewing_is_in_time_for_java_as_well(
        self, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        assert lock_of(1, expiry=Expiry(600.0, 60.0)).renew_every_seconds == 15.0


class TestRaces:
    """Every storage call of two or three processes interleaved, in orders drawn by a seed."""

    @pytest.mark.parametrize("seed", range(300))
    def test_a_stale_lock_goes_to_one_of_many(self, seed: int) -> None:
        world = LockSetup(dead={1})
        storage = fresh_memory_storage(clock=world.clock)
        FileSystemLock(storage, ".hoodie", EXPIRY, world.ports(1)).try_acquire()
        turns = Turns(seed)
        locks = [
            FileSystemLock(turns.storage(storage), ".hoodie", EXPIRY, world.ports(pid))
            for pid in (2, 3, 4)
        ]
        answers = turns.run([partial(tried, lock, times=3) for lock in locks])
        assert answers.count(True) == 1
        assert [turns.alone(lock.is_held) for lock in locks] == answers

    @pytest.mark.parametrize("seed", range(300))
    def test_nobody_takes_over_a_lock_that_is_given_back_and_taken_again(self, seed: int) -> None:
        world = LockSetup(dead={1})
        storage = fresh_memory_storage(clock=world.clock)
        FileSystemLock(storage, ".hoodie", EXPIRY, world.ports(1)).try_acquire()
        turns = Turns(seed)
        shared = turns.storage(storage)
        inside: list[int] = []

        def work(pid: int) -> None:
            for _ in range(3):
                lock = FileSystemLock(shared, ".hoodie", EXPIRY, world.ports(pid))
                if tried(lock, times=2):
                    inside.append(pid)
                    assert lock.is_held()
                    assert inside == [pid]
                    inside.remove(pid)
                    lock.release()

        turns.run([partial(work, 2), partial(work, 3)])
        assert storage.read_if_present(LOCK) is None


class TestCrashes:
    def test_whoever_dies_breaking_a_lock_keeps_nobody_out(self) -> None:
        for plan in crash_plans(self.calls_of_a_break()):
            world = LockSetup(dead={1, 2})
            storage = fresh_memory_storage(clock=world.clock)
            FileSystemLock(storage, ".hoodie", EXPIRY, world.ports(1)).try_acquire()
            dying = FaultyStorage(storage, plan)
            with pytest.raises(Crashed):
                FileSystemLock(dying, ".hoodie", EXPIRY, world.ports(2)).try_acquire()
            # A file torn in the middle is of no known process, and has to expire.
            world.clock.advance(61_000)
            last = FileSystemLock(storage, ".hoodie", Expiry(60.0, 60.0), world.ports(3))
            assert tried(last, times=2), str(plan)

    def calls_of_a_break(self) -> tuple[StorageCall, ...]:
        world = LockSetup(dead={1})
        storage = FaultyStorage(fresh_memory_storage(clock=world.clock))
        FileSystemLock(storage, ".hoodie", EXPIRY, world.ports(1)).try_acquire()
        before = len(storage.calls)
        FileSystemLock(storage, ".hoodie", EXPIRY, world.ports(2)).try_acquire()
        first = storage.calls[before:]
        return tuple(replace(call, number=call.number - before) for call in first)

    def test_old_tickets_are_removed_with_the_next_break(
        self, world: LockSetup, storage: Storage, lock_of: Callable[..., FileSystemLock]
    ) -> None:
        storage.put(".hoodie/.lakewarden/lock_breaks/another/000001.json", b"")
        lock_of(1).try_acquire()
        world.clock.advance(LEFT_AFTER_MS + 1)
        assert lock_of(2).try_acquire() == Acquired()
        assert [entry.path for entry in storage.walk("")] == [LOCK]


def tried(lock: FileSystemLock, times: int) -> bool:
    """Whether one of some tries got the lock."""
    return any(lock.try_acquire() == Acquired() for _ in range(times))
