"""The in-process lock: one owner per table, whatever spelling the table's address has."""

import pytest

from lakewarden.engine.locks.providers.in_process import InProcessLock
from lakewarden.engine.locks.providers.port import Acquired, HeldBy
from lakewarden.engine.storage.port import Location
from tests.engine.locks.lock_setup import LockSetup


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/tables/a", "/tables/a/"),
        ("/tables/a", "file:/tables/a"),
        ("/tables/a", "file:///tables/a"),
        ("/tables/a", "file://localhost/tables/a"),
        ("s3://bucket/a", "s3a://bucket/a"),
        ("memory://a", "memory://a"),
    ],
)
def test_one_owner_per_table(one: str, other: str) -> None:
    world = LockSetup()
    first = InProcessLock(Location(one), world.ports(1))
    second = InProcessLock(Location(other), world.ports(1))
    assert first.try_acquire() == Acquired()
    answer = second.try_acquire()
    assert isinstance(answer, HeldBy)
    assert second.holder() == answer.holder
    second.release()
    assert first.is_held()
    assert first.renew()
    first.release()
    assert not first.is_held()
    assert second.try_acquire() == Acquired()
    second.release()


def test_tables_do_not_share_a_lock() -> None:
    world = LockSetup()
    locks = [InProcessLock(Location(uri), world.ports(1)) for uri in ("/tables/a", "/tables/b")]
    assert [lock.try_acquire() for lock in locks] == [Acquired(), Acquired()]
    for lock in locks:
        lock.release()


def test_a_forked_child_does_not_inherit_a_lock() -> None:
    world = LockSetup()
    parent = InProcessLock(Location("/tables/a"), world.ports(1))
    child = InProcessLock(Location("/tables/a"), world.ports(2))
    assert parent.try_acquire() == Acquired()
    assert child.try_acquire() == Acquired()
    parent.release()
    child.release()
