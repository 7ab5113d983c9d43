"""Snapshots of the key cache: right or not used, whatever has become of them or of the table."""

from collections.abc import Callable

import pytest

from lakewarden.engine.kernel.events import EventLog
from lakewarden.engine.metadata.reading.kept_keys import Hashes, KeySnapshots
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import FaultyStorage
from tests.engine.metadata.reading.test_key_cache import (
    KEYS,
    LARGE,
    Recording,
    World,
    compare,
    look,
)

BUILT = {"hoodie.metadata.compact.max.delta.commits": "2"}


class Saved:
    """A table whose index has base files, and snapshots of these."""

    def __init__(self) -> None:
        self.world = World(options=BUILT)
        self.world.upsert(0, 20)
        self.world.client().drop_index("record_index")
        self.world.client().create_index("record_index")
        self.folder: MemoryStorage = fresh_memory_storage()
        self.log = EventLog()
        self.after(self.cache())

    def snapshots(self, table: str = "t") -> KeySnapshots:
        return KeySnapshots(self.folder, "memory", table, self.log)

    def cache(self, table: str = "t") -> KeyCache:
        """That of a process that starts."""
        Recording.seen.clear()
        cache = KeyCache(Recording(1))
        cache.within(LARGE, self.snapshots(table))
        return cache

    def after(self, cache: KeyCache) -> None:
        """A batch of the process."""
        look(cache, self.world.storage)
        cache.tidy()

    def files(self) -> list[str]:
        return [file.path for file in self.folder.walk("")]


def test_a_process_that_starts_reads_no_base_file_that_another_has_saved() -> None:
    saved = Saved()
    assert len(saved.files()) == 2
    cache = saved.cache()
    saved.after(cache)
    assert not set(Recording.seen) & set(KEYS)
    assert compare(cache, saved.world.storage)


def test_what_has_come_since_the_snapshot_is_added_to_it() -> None:
    saved = Saved()
    saved.world.delete(0, 5)
    for first in (10, 20):
        saved.world.upsert(first, first + 10, "b")
        cache = saved.cache()
        saved.after(cache)
        assert not set(Recording.seen) & set(KEYS[5:10])
        assert compare(cache, saved.world.storage)


def test_a_snapshot_of_before_a_new_build_is_not_used() -> None:
    saved = Saved()
    saved.world.client().drop_index("record_index")
    saved.world.upsert(0, 20, "b")
    saved.world.client().clustering.schedule_and_run()
    saved.world.client().create_index("record_index")
    cache = saved.cache()
    saved.after(cache)
    assert set(KEYS[:20]) <= set(Recording.seen)
    assert compare(cache, saved.world.storage)


def test_a_snapshot_follows_the_compactions_of_the_index() -> None:
    saved = Saved()
    cache = saved.cache()
    saved.after(cache)
    before = {file: saved.folder.read(file) for file in saved.files()}
    bases = look(cache, saved.world.storage)
    while look(cache, saved.world.storage) & bases:
        saved.world.upsert(15, 25)
    # One file group with each batch.
    for changed in (1, 2, 2):
        cache.tidy()
        assert sum(saved.folder.read(file) != old for file, old in before.items()) == changed
    fresh = saved.cache()
    saved.after(fresh)
    assert not set(Recording.seen) & set(KEYS[:15])
    assert compare(fresh, saved.world.storage)


def test_snapshots_of_another_table_are_not_used() -> None:
    saved = Saved()
    own = saved.files()
    saved.after(saved.cache("other"))
    assert set(KEYS[:20]) <= set(Recording.seen)
    others = [file for file in saved.files() if file not in own]
    assert len(others) == 2
    for file, other in zip(own, others, strict=True):
        saved.folder.put(other, saved.folder.read(file))
    saved.after(saved.cache("other"))
    assert set(KEYS[:20]) <= set(Recording.seen)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def swapped(content: bytes) -> bytes:
    return content.replace(b"record-index-0000", b"record-index-0001")


@pytest.mark.parametrize(
    "damage", [cut, flipped, swapped, lambda _: b"", lambda content: b"X" + content[1:]]
)
def test_a_damaged_snapshot_is_not_used(damage: Callable[[bytes], bytes]) -> None:
    saved = Saved()
    for file in saved.files():
        saved.folder.put(file, damage(saved.folder.read(file)))
    cache = saved.cache()
    saved.after(cache)
    assert set(KEYS[:20]) & set(Recording.seen)
    assert compare(cache, saved.world.storage)


def test_the_snapshot_of_another_file_group_is_not_used() -> None:
    saved = Saved()
    first, second = saved.files()
    saved.folder.put(first, saved.folder.read(second))
    cache = saved.cache()
    saved.after(cache)
    assert compare(cache, saved.world.storage)


def test_a_folder_that_fails_costs_no_batch_and_is_told() -> None:
    saved = Saved()
    faults = tuple(Fault(call, FaultKind.FAIL_BEFORE) for call in range(1, 9))
    failing = FaultyStorage(saved.folder, FaultPlan(faults), saved.world.clock)
    cache = KeyCache()
    cache.within(LARGE, KeySnapshots(failing, "memory", "t", saved.log))
    for _ in range(3):
        saved.after(cache)
    # Two file groups were not found, nor saved, and that is not tried again.
    assert len(saved.log.named("key_snapshot_failed")) == 4
    assert compare(cache, saved.world.storage)


def test_batches_of_a_stream_save_what_they_keep_where_the_setting_says() -> None:
    world = World(options=BUILT)
    folder = fresh_memory_storage()
    said = {"lakewarden.stream.key_cache_folder": folder.location.uri}
    table = world.client()
    for number in range(5):
        rows = [{"id": f"k{number}", "p": "a", "ts": number}]
        table.upsert(rows, said, stream=("s", number))
    assert folder.walk("")


def test_hashes_of_a_snapshot_keep_their_seed() -> None:
    saved = Saved()
    cache = KeyCache(Hashes(2))
    cache.within(LARGE, saved.snapshots())
    saved.after(cache)
    assert compare(cache, saved.world.storage)
