"""The key cache answers what the record index of each snapshot answers, whoever wrote since."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.metadata.reading.file_group import MetadataFileGroup
from lakewarden.engine.metadata.reading.key_cache import KEY_BYTES, KeyCache, SortedKeys
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from tests.crash.dying_operations import ports
from tests.golden_tables import GoldenTable
from tests.known_keys import said_of_keys

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
GLOBAL, PARTITIONED = "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"
LARGE = 1 << 20
KEYS = [f"k{number}" for number in range(40)]


Places = list[tuple[str, str, str]]


def compare(cache: KeyCache, storage: Storage) -> Places:
    """What both say of all keys, which has to be the same."""
    by_index, known = said_of_keys(storage, cache, [*KEYS, "unknown", ""])
    assert known == by_index
    homes = [(one.key, one.file_group_id) for one in known]
    return [(key, home.partition.removeprefix("p="), home.file_id) for key, home in homes]


def is_kept(cache: KeyCache, storage: Storage) -> bool:
    """Whether the cache answers for every file group."""
    shards = load_snapshot(storage).metadata.record_index()
    shares = [share for shard in shards for share in shard.shares(pa.array(KEYS, pa.string()))]
    return all(cache.locate(group, keys) is not None for group, keys in shares)


@dataclass
class World:
    """A table that several clients write, and a cache that looks on."""

    index: str = GLOBAL
    bytes_max: int = LARGE
    options: dict[str, str] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)
    cache: KeyCache = field(default_factory=KeyCache)
    seeds: Iterator[int] = field(default_factory=lambda: iter(range(100, 1000)))

    def __post_init__(self) -> None:
        self.storage: MemoryStorage = fresh_memory_storage(clock=self.clock)
        self.cache.within(self.bytes_max)
        Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"],
            ordering=["ts"],
            type="mor",
            index=self.index,
            properties={
                "hoodie.metadata.index.column.stats.enable": "false",
                "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
                **self.options,
            },
            storage=self.storage,
            ports=ports(self.clock, 1),
        )

    def client(self) -> Table:
        """Another client than all before, with a clock that has gone on."""
        self.clock.advance(1000)
        return Table.on(self.storage, ports(self.clock, next(self.seeds)))

    def upsert(self, first: int, end: int, partition: str = "a") -> str:
        given = [{"id": key, "p": partition, "ts": self.clock.now_ms()} for key in KEYS[first:end]]
        moves = {"hoodie.record.index.update.partition.path": "true"}
        return self.client().upsert(given, moves).instant

    def delete(self, first: int, end: int, partition: str = "a") -> str:
        given = [{"id": key, "p": partition, "ts": 0} for key in KEYS[first:end]]
        return self.client().delete(pa.Table.from_pylist(given, schema=SCHEMA)).instant

    def check(self) -> Places:
        return compare(self.cache, self.storage)


@pytest.mark.parametrize("name", ["mor_record_index_global", "cow_record_index_partitioned"])
def test_tables_by_java_are_kept_as_they_are(name: str, golden: GoldenTable) -> None:
    storage = open_storage(Location(str(golden(name))))
    cache = KeyCache()
    cache.within(LARGE)
    assert cache.size_bytes == 0
    entries = compare(cache, storage)
    assert entries
    assert cache.size_bytes >= KEY_BYTES * len(entries)
    assert is_kept(cache, storage)


@pytest.mark.parametrize("index", [GLOBAL, PARTITIONED])
def test_writes_of_others_deletes_and_returns_are_known(index: str) -> None:
    world = World(index)
    assert world.check() == []
    world.upsert(0, 20)
    assert len(world.check()) == 20
    world.upsert(10, 30, "b" if index == PARTITIONED else "a")
    world.check()
    world.delete(5, 15)
    assert all(partition != "a" or key not in KEYS[5:15] for key, partition, _ in world.check())
    world.upsert(5, 10)
    assert set(KEYS[5:10]) <= {key for key, _, _ in world.check()}
    assert is_kept(world.cache, world.storage)


def test_keys_that_move_to_other_partitions_are_found_there() -> None:
    world = World()
    world.upsert(0, 20)
    world.check()
    world.upsert(5, 15, "b")
    assert {key for key, partition, _ in world.check() if partition == "b"} == set(KEYS[5:15])


def test_what_a_rollback_takes_back_is_forgotten() -> None:
    world = World()
    world.upsert(0, 10)
    newest = world.upsert(10, 20)
    assert len(world.check()) == 20
    world.client().rollback(newest)
    assert len(world.check()) == 10
    world.upsert(15, 25)
    assert len(world.check()) == 20


def test_what_a_restore_takes_back_is_forgotten() -> None:
    world = World()
    kept = world.upsert(0, 10)
    world.check()
    world.delete(0, 5)
    world.upsert(20, 30, "b")
    assert len(world.check()) == 15
    world.client().restore(kept)
    assert [key for key, _, _ in world.check()] == sorted(KEYS[:10])


def test_an_index_that_is_built_anew_is_read_anew() -> None:
    world = World()
    world.upsert(0, 20)
    world.check()
    world.client().drop_index("record_index")
    world.upsert(20, 30)
    world.client().clustering.schedule_and_run()
    world.client().create_index("record_index")
    assert len(world.check()) == 30
    assert is_kept(world.cache, world.storage)


def test_a_metadata_table_that_is_made_anew_has_other_files_of_the_same_names() -> None:
    world = World()
    world.upsert(0, 10)
    world.client().delete_metadata_table()
    world.client().create_metadata_table()
    before = world.check()
    world.client().delete_metadata_table()
    world.client().clustering.schedule_and_run()
    world.client().create_metadata_table()
    after = world.check()
    assert [key for key, _, _ in after] == [key for key, _, _ in before]
    assert {group for _, _, group in after}.isdisjoint({group for _, _, group in before})


def test_clustering_moves_the_keys_to_its_groups() -> None:
    world = World()
    world.upsert(0, 20)
    before = {group for _, _, group in world.check()}
    world.client().clustering.schedule_and_run()
    after = {group for _, _, group in world.check()}
    assert after.isdisjoint(before)


def test_a_compacted_index_is_known_from_its_new_base_files() -> None:
    world = World(options={"hoodie.metadata.compact.max.delta.commits": "2"})
    for first in range(0, 35, 5):
        world.upsert(first, first + 5)
        world.delete(first, first + 2)
        assert len(world.check()) == (first // 5 + 1) * 3
    assert is_kept(world.cache, world.storage)


def test_a_write_that_is_not_completed_is_not_known() -> None:
    world = World()
    world.upsert(0, 10)
    before = world.check()
    active = load_snapshot(world.storage).timeline.active
    done = active.completed()[-1]
    path = active.path(done)
    content = world.storage.read(path)
    world.storage.delete(path)
    assert world.check() == []
    world.storage.put(path, content)
    assert world.check() == before


def test_two_tables_have_caches_of_their_own() -> None:
    one, other = World(), World()
    one.upsert(0, 10)
    other.upsert(5, 15)
    assert one.check() != other.check()
    assert {key for key, _, _ in one.check()} == set(KEYS[:10])


def test_a_group_that_does_not_fit_is_asked_each_time() -> None:
    world = World(bytes_max=1)
    world.upsert(0, 40)
    assert len(world.check()) == 40
    assert not is_kept(world.cache, world.storage)
    assert world.cache.size_bytes <= 1
    world.delete(0, 20)
    assert len(world.check()) == 20


def test_a_group_that_outgrows_the_bound_is_left_out_and_the_others_stay() -> None:
    world = World(options={"hoodie.metadata.global.record.level.index.min.filegroup.count": "4"})
    world.upsert(0, 20)
    world.check()
    bound = world.cache.size_bytes + KEY_BYTES
    world.cache.within(bound)
    world.upsert(20, 40)
    assert len(world.check()) == 40
    assert 0 < world.cache.size_bytes <= bound
    assert not is_kept(world.cache, world.storage)
    world.cache.within(LARGE)
    assert len(world.check()) == 40
    assert is_kept(world.cache, world.storage)


def words(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def test_hashes_that_share_one_half_are_told_apart() -> None:
    homes = np.array([0, 1, 2, 3, 4], np.int32)
    kept = SortedKeys.of(words(7, 7, 1, 7, 9), words(5, 3, 3, 9, 3), homes)
    asked = words(7, 7, 7, 1, 9, 9, 8), words(9, 5, 3, 3, 3, 4, 3)
    assert kept.find(*asked).tolist() == [3, 0, 1, 2, 4, -2, -2]


def test_of_a_hash_that_comes_again_the_last_home_counts() -> None:
    kept = SortedKeys.of(words(7, 7, 7, 7), words(5, 3, 5, 5), np.array([0, 1, 2, -1], np.int32))
    assert len(kept) == 2
    assert kept.find(words(7, 7), words(3, 5)).tolist() == [1, -1]


def test_a_bound_of_nothing_keeps_nothing() -> None:
    world = World()
    world.upsert(0, 10)
    world.check()
    assert world.cache.size_bytes
    assert world.cache.within(0) is None
    assert not world.cache.size_bytes


def alike(keys: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """One hash for all keys."""
    return np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)


@pytest.mark.parametrize("is_built", [False, True])
def test_keys_of_one_file_that_hashes_do_not_tell_apart_are_asked_for(is_built: bool) -> None:
    world = World(cache=KeyCache(alike))
    world.upsert(0, 30)
    if is_built:
        world.client().drop_index("record_index")
        world.client().create_index("record_index")
    assert len(world.check()) == 30
    assert not world.cache.size_bytes


def test_groups_that_the_index_has_not_any_more_are_forgotten() -> None:
    world = World()
    world.upsert(0, 30)
    world.check()
    world.cache.keep_only([])
    assert not world.cache.size_bytes


def with_base(completed: Callable[[str], str | None]) -> MetadataFileGroup:
    """A file group with a base file, of which it is given when its instant completed."""
    world = World()
    world.upsert(0, 40)
    world.client().drop_index("record_index")
    world.client().create_index("record_index")
    metadata = load_snapshot(world.storage).metadata
    slice_ = next(one for one in metadata.slices("record_index") if one.base_file)
    return MetadataFileGroup(metadata.storage, slice_, lambda _: True, completed=completed)


ASKED = pa.array([b"unknown"], pa.large_binary())


def test_a_base_file_that_only_its_name_tells_apart_is_not_kept() -> None:
    cache = KeyCache()
    cache.within(LARGE)
    assert cache.locate(with_base(lambda _: None), ASKED) is None
    assert cache.locate(with_base(lambda instant: instant), ASKED) is None
    assert cache.locate(with_base(lambda instant: f"{instant}1"), ASKED) is not None


def test_a_base_file_without_room_is_not_read() -> None:
    def never(_: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
        raise AssertionError("The base file was read.")

    group, cache = with_base(lambda instant: f"{instant}1"), KeyCache(never)
    cache.within(KEY_BYTES * group.base_entries - 1)
    assert cache.locate(group, ASKED) is None
