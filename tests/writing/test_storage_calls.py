"""Storage calls of a small upsert: they do not grow, and nothing is read twice without need."""

from collections import Counter

import pytest

from bench.storage_calls import Stretches, small_upsert
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.testing.fault_plan import StorageCall
from tests.crash.dying_operations import ports

# Those to the lock are among them.
CALLS_MAX = 126
READING = ("read", "read_if_present", "read_versioned", "open", "list", "walk")
TIMELINE = ("list", ".hoodie/timeline")


@pytest.fixture(scope="module")
def calls() -> tuple[StorageCall, ...]:
    clock = ManualClock()
    storage = fresh_memory_storage(clock=clock)
    lock = {"hoodie.write.lock.provider": "file_system"}
    return small_upsert(storage, ports(clock, 1), lock)


def test_a_small_upsert_makes_no_more_storage_calls_than_it_did(
    calls: tuple[StorageCall, ...],
) -> None:
    by_operation = Counter(call.operation for call in calls)
    assert by_operation.total() <= CALLS_MAX, by_operation


def test_outside_the_lock_no_object_is_read_twice(calls: tuple[StorageCall, ...]) -> None:
    reads = Counter(call.path for call in Stretches.of(calls).outside if call.operation in READING)
    assert [path for path, count in reads.items() if count > 1] == []


def test_the_timeline_is_listed_once_outside_the_lock_and_once_in_each_hold(
    calls: tuple[StorageCall, ...],
) -> None:
    stretches = Stretches.of(calls)
    assert len(stretches.holds) == 2
    for stretch in (stretches.outside, *stretches.holds):
        assert [(call.operation, call.path) for call in stretch].count(TIMELINE) == 1
