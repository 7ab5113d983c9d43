"""Memory storage: the contract, its clock and its names."""

import pytest

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from tests.engine.storage.contract import ReplaceContract, StorageContract, TouchContract


class TestMemoryStorage(StorageContract, TouchContract, ReplaceContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return fresh_memory_storage()


def test_times_are_those_of_the_clock() -> None:
    clock = ManualClock(1000)
    storage = fresh_memory_storage(clock=clock)
    storage.put("a", b"1")
    clock.advance(5)
    storage.create_exclusive("b", b"1")
    clock.advance(5)
    storage.create("c").close()
    clock.advance(5)
    storage.touch("a")
    assert [entry.modified_ms for entry in storage.walk("")] == [1015, 1005, 1010]


def test_a_name_is_shared() -> None:
    storage = fresh_memory_storage("shared")
    storage.put("file", b"1")
    assert open_storage(Location("memory://shared")).read("file") == b"1"
    assert open_storage(Location("memory://shared/")).read("file") == b"1"


def test_a_fresh_storage_is_empty_whatever_its_name_had() -> None:
    earlier = fresh_memory_storage("again")
    earlier.put("file", b"1")
    assert fresh_memory_storage("again").walk("") == ()
    assert earlier.read("file") == b"1"
