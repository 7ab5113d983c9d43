"""The key cache answers what the record index of each snapshot answers, whoever wrote since."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.planned_slices import slice_among
from lakewarden.engine.formats.instant_metadata.compaction import decode_plan
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.metadata.encoding.records import Run, base_file
from lakewarden.engine.metadata.entries.content import folded
from lakewarden.engine.metadata.reading.kept_keys import KEY_BYTES, Hashes
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.partition import ALL, BaseMark, MetadataFileGroup
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.timeline.instants.instant import Action
from tests.crash.dying_operations import ports
from tests.golden_tables import GoldenTable
from tests.known_keys import said_of_keys

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64())])
GLOBAL, PARTITIONED = "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX"
LARGE = 1 << 20
ASKED = pa.array([b"unknown"], pa.large_binary())
KEYS = [f"k{number}" for number in range(40)]
ALL_ASKED = pa.array([key.encode() for key in KEYS], pa.large_binary())


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


class Recording(Hashes):
    """Remembers which keys it was asked for, in which order."""

    seen: ClassVar[list[str]] = []

    def __call__(self, keys: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
        self.seen.extend(key.decode() for key in keys.to_pylist())
        return super().__call__(keys)


COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "2"}


def recording(**given: Any) -> World:
    Recording.seen.clear()
    return World(cache=KeyCache(Recording(1)), options=COMPACTED, **given)


def look(cache: KeyCache, storage: Storage) -> set[str]:
    """Have the cache answer for all file groups; the base files that these have."""
    groups = groups_of(storage)
    cache.prepare(groups, LocalExecutor(1))
    assert all(cache.locate(group, ASKED) is not None for group in groups)
    marks = [group.base_mark for group in groups]
    return {mark.path for mark in marks if mark is not None and mark.path}


def groups_of(storage: Storage) -> list[MetadataFileGroup]:
    shards = load_snapshot(storage).metadata.record_index()
    return [group for shard in shards for group in shard.file_groups]


def test_a_compaction_of_the_index_has_no_key_read_again() -> None:
    world, bases = recording(), set[str]()
    for number in range(8):
        world.upsert(0, 5 * number + 5)
        bases |= look(world.cache, world.storage)
        world.cache.tidy()
    assert len(bases) >= 4
    assert sorted(key for key in Recording.seen if key in KEYS) == sorted(KEYS)
    world.check()


def test_one_who_comes_late_reads_what_compactions_have_folded_meanwhile() -> None:
    world = recording()
    world.upsert(0, 10)
    look(world.cache, world.storage)
    for number in range(2, 6):
        world.upsert(0, 5 * number + 5, "ab"[number % 2])
        world.delete(number, number + 1, "ab"[number % 2])
    world.check()
    assert is_kept(world.cache, world.storage)


def test_what_is_kept_stays_right_through_everything_that_changes_the_index() -> None:
    world = World(options={"hoodie.metadata.compact.max.delta.commits": "1"})
    for number in range(14):
        first = 7 * number % 30
        newest = world.upsert(first, first + 10, "ab"[number % 2])
        world.check()
        world.cache.tidy()
        if number % 3 == 1:
            world.client().clustering.schedule_and_run()
        elif number % 3 == 2:
            world.delete(first + 2, first + 5, "ab"[number % 2])
        elif number % 4 == 3:
            world.client().rollback(newest)
        world.check()
        assert is_kept(world.cache, world.storage)
    assert world.cache.size_bytes < 100_000


def compacted_world() -> tuple[World, str]:
    """A world whose cache knows the slices that a compaction has folded since, with all that came
    after that look; the instant that moved keys."""
    world = World(options={"hoodie.metadata.compact.max.delta.commits": "6"})
    world.upsert(0, 20)
    look(world.cache, world.storage)
    moved = world.upsert(5, 15, "b")
    while not all((group.base_mark or NOWHERE).path for group in groups_of(world.storage)):
        world.upsert(20, 40)
    return world, moved


NOWHERE = BaseMark("", 0, "", None)


def test_a_base_file_with_other_entries_than_its_plan_says_is_read() -> None:
    world, _ = compacted_world()
    group = groups_of(world.storage)[0]
    mark = group.base_mark
    assert mark is not None
    run = group.base_run(ALL)
    assert run is not None
    fewer = folded("record_index", [Run(run.keys[1:], run.values[1:], run.schema_text, run.path)])  # type: ignore[index]
    world.storage.put(f".hoodie/metadata/{mark.path}", base_file(fewer, 0))
    assert run.keys[0].as_py().decode() not in {key for key, _, _ in world.check()}


def test_a_base_file_of_which_some_part_does_not_count_any_more_is_read() -> None:
    """Keys may have moved in what does not count, so that their number says nothing."""
    world, moved = compacted_world()
    metadata = load_snapshot(world.storage).metadata
    slice_ = metadata.slices("record_index")[0]
    files = {file.name: file for file in metadata.files("record_index")}
    started = metadata.started(slice_.base_instant, Action.COMPACTION)
    assert started is not None
    assert started.requested is not None
    path = started.requested.entry.path
    plan = decode_plan(metadata.storage.read(path), path)
    operation = next(one for one in plan.operations if one.file_id == slice_.file_id)
    folded_slice = slice_among(files, operation)
    assert folded_slice is not None
    completed = metadata.timeline.completion_time
    below = MetadataFileGroup(metadata.storage, folded_slice, lambda one: one != moved)
    group = MetadataFileGroup(
        metadata.storage, slice_, lambda _: True, completed=completed, below=lambda: below
    )
    known = world.cache.locate(group, ALL_ASKED)
    fresh = KeyCache()
    fresh.within(LARGE)
    by_base = fresh.locate(group, ALL_ASKED)
    assert known is not None
    assert by_base is not None
    assert [known.homes[at] for at in known.at] == [by_base.homes[at] for at in by_base.at]


def test_a_base_file_of_a_slice_that_is_not_whole_any_more_is_read() -> None:
    world, _ = compacted_world()
    files = world.storage.list(".hoodie/metadata/record_index").files
    for file in sorted(files, key=lambda file: file.modified_ms)[2:]:
        if ".log." in file.name:
            world.storage.delete(file.path)
    groups = groups_of(world.storage)
    assert any(group.below is None for group in groups)
    assert look(world.cache, world.storage)
    fresh = KeyCache()
    fresh.within(LARGE)
    for group in groups:
        known, read = world.cache.locate(group, ALL_ASKED), fresh.locate(group, ALL_ASKED)
        assert known is not None
        assert read is not None
        assert [known.homes[at] for at in known.at] == [read.homes[at] for at in read.at]


def test_a_bound_of_nothing_keeps_nothing() -> None:
    world = World()
    world.upsert(0, 10)
    world.check()
    assert world.cache.size_bytes
    assert world.cache.within(0) is None
    assert not world.cache.size_bytes


class Alike(Hashes):
    """One hash for all keys."""

    def __call__(self, keys: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.uint64)


@pytest.mark.parametrize("is_built", [False, True])
def test_keys_of_one_file_that_hashes_do_not_tell_apart_are_asked_for(is_built: bool) -> None:
    world = World(cache=KeyCache(Alike(0)))
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
    world.cache.prepare([], LocalExecutor(1))
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


def test_a_base_file_that_only_its_name_tells_apart_is_not_kept() -> None:
    cache = KeyCache()
    cache.within(LARGE)
    assert cache.locate(with_base(lambda _: None), ASKED) is None
    assert cache.locate(with_base(lambda instant: instant), ASKED) is None
    assert cache.locate(with_base(lambda instant: f"{instant}1"), ASKED) is not None


class Unhashed(Hashes):
    """For what must not be read."""

    def __call__(self, keys: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
        raise AssertionError("A base file was read.")


def test_a_base_file_without_room_is_not_read() -> None:
    group, cache = with_base(lambda instant: f"{instant}1"), KeyCache(Unhashed(0))
    cache.within(KEY_BYTES * group.base_entries - 1)
    assert cache.locate(group, ASKED) is None
