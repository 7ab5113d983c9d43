"""The traps that writers for Java Hudi have met, each on our writer.

Java's symptoms are silent: rows that vanish, double or come back. Whoever takes a guard away shall
see the test with the trap's number fail.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.formats.bloom import DEFAULT_ENTRIES, parse_bloom
from lakewarden.engine.formats.log.block import Header
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.run.executor import LocalExecutor, ManualBackground
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Lost, Storage
from lakewarden.engine.table.config import PROPERTIES_PATH
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action, State
from lakewarden.engine.timeline.timeline import Timeline
from tests.golden_tables import GoldenTable
from tests.writing.model import SCHEMA

BLOOM = b"org.apache.hudi.bloomfilter"
METADATA = ".hoodie/metadata"
WRITES = ("put", "close", "create_exclusive")

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Interrupted:
    """An executor that lets something else happen before the files of a write are made."""

    happening: Callable[[], None]
    workers: int = 1

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        self.happening()
        return map(function, tasks)


CLOCK = ManualClock()
DEAD_AFTER_SECONDS = 3_600


def alone() -> Ports:
    """Ports with which one thing is done after the other."""
    return Ports(clock=CLOCK, executor=LocalExecutor(1))


@pytest.fixture
def storage() -> MemoryStorage:
    return fresh_memory_storage(clock=CLOCK)


def create(storage: Storage, **how: Any) -> Table:
    place = storage.location.uri
    given = {"key": ["id"], "partition": ["p"], "ordering": ["ts"]} | how
    return Table.create(place, SCHEMA, storage=storage, ports=alone(), **given)


def rows(*ids: str, ts: int = 1, name: str = "first") -> pa.Table:
    listed = [{"id": id_, "p": "a", "ts": ts, "v": 0.5, "name": name} for id_ in ids]
    return pa.Table.from_pylist(listed, SCHEMA)


def is_data_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return not path.startswith(".hoodie/") and parse_file_name(name, 0) is not None


def file_id(path: str) -> str:
    file = parse_file_name(path.rpartition("/")[2], 0)
    assert file is not None
    return file.file_id


def data_files(storage: Storage) -> list[str]:
    return [entry.path for entry in storage.walk("") if is_data_file(entry.path)]


def base_files(storage: Storage) -> list[str]:
    return [path for path in data_files(storage) if path.endswith(".parquet")]


def written_paths(storage: FaultyStorage) -> list[str]:
    """What has been written, in its order."""
    return [call.path for call in storage.calls if call.operation in WRITES]


def crashed_while_writing(storage: Storage) -> str:
    """Let an upsert die after its first data file, and wait; the instant that it leaves."""
    trial = FaultyStorage(copy_of(storage))
    Table.on(trial, alone()).upsert(rows("k1", ts=9))
    call = next(one for one in trial.calls if one.operation in WRITES and is_data_file(one.path))
    plan = FaultPlan((Fault(call.number, FaultKind.FAIL_AFTER, is_fatal=True),))
    with pytest.raises(Crashed):
        Table.on(FaultyStorage(storage, plan), alone()).upsert(rows("k1", ts=9))
    CLOCK.sleep(DEAD_AFTER_SECONDS)
    (pending,) = Table.on(storage).timeline().pending()
    return pending.requested


def copy_of(storage: Storage) -> MemoryStorage:
    copy = fresh_memory_storage(clock=CLOCK)
    for entry in storage.walk(""):
        copy.put(entry.path, storage.read(entry.path))
    return copy


def metadata_logs(storage: Storage, instant: str) -> dict[str, list[str]]:
    """The log files that an instant has written to the metadata table, by partition."""
    found: dict[str, list[str]] = {}
    for entry in storage.walk(METADATA):
        partition = entry.path.removeprefix(f"{METADATA}/").partition("/")[0]
        if f"_{instant}.log." in entry.name:
            found.setdefault(partition, []).append(entry.path)
    return found


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_t01_a_marker_stands_before_every_data_file(storage: MemoryStorage, type_: str) -> None:
    recorded = FaultyStorage(storage)
    table = create(recorded, type=type_)
    table.bulk_insert(rows("k1", "k2"))
    table.upsert(rows("k1", "k3", ts=2))
    table.delete(rows("k2"))
    announced: set[str] = set()
    made = 0
    for path in written_paths(recorded):
        if path.startswith(".hoodie/.temp/") and ".marker." in path:
            announced.add(path.split("/", 3)[3].rpartition(".marker.")[0])
        elif is_data_file(path):
            assert path in announced
            made += 1
    assert made >= 3


def test_t01_a_rollback_finds_files_without_markers(storage: MemoryStorage) -> None:
    table = create(storage)
    table.bulk_insert(rows("k1"))
    instant = crashed_while_writing(storage)
    storage.delete_folder(f".hoodie/.temp/{instant}")
    assert [path for path in data_files(storage) if instant in path]
    table.rollback(instant)
    assert not [path for path in data_files(storage) if instant in path]


def test_t02_the_checksum_file_of_what_we_replace_goes(tmp_path: Path) -> None:
    storage = open_storage(Location(str(tmp_path)))
    create(storage)
    checksum = tmp_path / ".hoodie" / ".hoodie.properties.crc"
    checksum.write_bytes(b"the checksum of what Java wrote")
    update_properties(storage, {"hoodie.table.metadata.partitions.inflight": "files"})
    assert not checksum.exists()


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM"])
def test_t03_a_returning_key_goes_to_its_old_group(storage: MemoryStorage, index: str) -> None:
    table = create(storage, type="mor", index=index)
    table.bulk_insert(rows("k1", "k2"))
    (group,) = {file_id(path) for path in base_files(storage) if "k1" in keys_in(storage, path)}
    table.delete(rows("k1"))
    # New keys would get a group of their own.
    commit = table.upsert(rows("k1", ts=2), small_file_limit=0)
    touched = {file_id(path) for path in data_files(storage) if commit.instant in path}
    assert touched == {group}
    assert sorted(table.read_arrow()["id"].to_pylist()) == ["k1", "k2"]


def test_t04_a_row_after_a_delete_needs_not_be_newer_than_what_the_base_file_still_has(
    storage: MemoryStorage,
) -> None:
    table = create(storage, type="mor")
    table.bulk_insert(rows("k1", ts=10, name="base"))
    table.delete(["k1"])
    assert table.read_arrow().num_rows == 0
    table.upsert(rows("k1", ts=1, name="late"))
    assert table.read_arrow()["name"].to_pylist() == ["late"]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_t05_every_commit_tells_all_partitions_of_the_metadata_table_first(
    storage: MemoryStorage, type_: str
) -> None:
    table = create(storage, type=type_, indexes=["record_index"])
    partitions = {"files", "column_stats", "partition_stats", "record_index"}
    assert set(table.config.metadata_partitions) == partitions
    inserted = table.bulk_insert(rows("k1", "k2"))
    others = (
        table.upsert(rows("k3", ts=2)),
        table.delete(rows("k2")),
        table.overwrite_partitions(rows("k4")),
        table.delete_partitions(["p=a"]),
    )
    reported = Timeline.load(storage.below(METADATA), table.config.layout).active.completed()
    times = {instant.requested: instant.completed or "" for instant in reported}
    for commit in (inserted, *others):
        assert times[commit.instant] < commit.completed
        assert "files" in metadata_logs(storage, commit.instant)
    for commit in (inserted, *others[:1]):
        assert set(metadata_logs(storage, commit.instant)) == partitions


def test_t06_a_partition_is_announced_before_its_first_data_file(storage: MemoryStorage) -> None:
    recorded = FaultyStorage(storage)
    create(recorded).upsert(rows("k1"))
    paths = written_paths(recorded)
    first = next(place for place, path in enumerate(paths) if is_data_file(path))
    assert paths.index("p=a/.hoodie_partition_metadata") < first


def test_t07_the_properties_carry_the_checksum_that_java_computes(storage: MemoryStorage) -> None:
    create(storage)
    update_properties(storage, {"hoodie.table.metadata.partitions.inflight": "files"})
    for path in (PROPERTIES_PATH, f"{METADATA}/{PROPERTIES_PATH}"):
        properties = parse_properties(storage.read(path), path)
        name = properties["hoodie.table.name"]
        database = properties.get("hoodie.database.name", "")
        expected = zlib.crc32(f"{database}.{name}".encode())
        assert properties["hoodie.table.checksum"] == str(expected)


def test_t08_every_base_file_has_a_filter_and_the_range_of_its_keys(
    storage: MemoryStorage,
) -> None:
    table = create(storage)
    table.bulk_insert(rows("k1", "k2"))
    table.upsert(rows("k1", "k3", ts=2))
    table.delete(rows("k2", "k3", "k1"))
    assert len(base_files(storage)) == 3
    for path in base_files(storage):
        texts = footer(storage, path)
        assert texts[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"
        assert BLOOM in texts
        keys = keys_in(storage, path)
        if keys:
            assert texts[b"hoodie_min_record_key"].decode() <= min(keys)
            assert texts[b"hoodie_max_record_key"].decode() >= max(keys)


def test_t09_nobody_touches_the_checksum_of_a_lock_that_java_is_creating(tmp_path: Path) -> None:
    storage = open_storage(Location(str(tmp_path)))
    table = create(storage)
    lock, checksum = tmp_path / ".hoodie" / "lock", tmp_path / ".hoodie" / ".lock.crc"
    lock.touch()
    checksum.write_bytes(b"in the making")
    provider = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    with pytest.raises(Conflict):
        table.upsert(
            rows("k1"),
            {
                "hoodie.write.lock.provider": provider,
                "hoodie.write.lock.wait_time_ms": "0",
                "hoodie.write.lock.num_retries": "0",
            },
        )
    # Whoever comes too late by a hair must leave it alone as well.
    assert isinstance(storage.create_exclusive(".hoodie/lock", b"mine"), Lost)
    assert lock.exists()
    assert checksum.read_bytes() == b"in the making"


def test_t10_what_failed_is_rolled_back_before_the_next_write_begins(
    storage: MemoryStorage,
) -> None:
    table = create(storage)
    table.bulk_insert(rows("k1"))
    failed = crashed_while_writing(storage)
    commit = table.upsert(rows("k2"))
    instants = table.timeline().instants
    assert not [instant for instant in instants if instant.state is not State.COMPLETED]
    (rollback,) = [one for one in instants if one.action is Action.ROLLBACK]
    assert failed < rollback.requested < commit.instant
    assert (rollback.completed or "") < commit.instant


def test_t11_an_eager_writer_leaves_a_live_write_of_ours_alone(storage: MemoryStorage) -> None:
    eager = create(storage, properties={"hoodie.clean.failed.writes.policy": "EAGER"})
    met: list[str] = []

    def meet() -> None:
        pending = eager.timeline().pending()
        if pending and not met:
            met.append(pending[0].requested)
            eager.insert(rows("k2"), small_file_limit=0)

    commit = Table.on(storage, Ports(clock=CLOCK, executor=Interrupted(meet))).insert(rows("k1"))
    assert met == [commit.instant]
    assert sorted(eager.read_arrow()["id"].to_pylist()) == ["k1", "k2"]


def test_t12_a_write_gives_the_sign_of_life_that_java_looks_for(storage: MemoryStorage) -> None:
    recorded, background = FaultyStorage(storage), ManualBackground()
    create(recorded)
    ages_ms: dict[str, int] = {}

    def look() -> None:
        CLOCK.advance(60_000)
        background.tick()
        for entry in storage.list(".hoodie/.heartbeat").files:
            ages_ms[entry.name] = CLOCK.now_ms() - entry.modified_ms

    ports = Ports(clock=CLOCK, executor=Interrupted(look), background=background)
    commit = Table.on(recorded, ports).upsert(rows("k1"))
    assert ages_ms == {commit.instant: 0}
    assert not storage.list(".hoodie/.heartbeat").files
    paths = [call.path for call in recorded.calls]
    heartbeat = paths.index(f".hoodie/.heartbeat/{commit.instant}")
    assert heartbeat < paths.index(f".hoodie/timeline/{commit.instant}.commit.requested")


def test_t13_an_index_that_java_has_dropped_is_not_written_to(storage: MemoryStorage) -> None:
    table = create(storage, indexes=["record_index"])
    table.bulk_insert(rows("k1"))
    left = "column_stats,files,partition_stats"
    update_properties(storage, {"hoodie.table.metadata.partitions": left})
    storage.delete_folder(f"{METADATA}/record_index")
    commit = table.upsert(rows("k2"))
    assert set(metadata_logs(storage, commit.instant)) == set(left.split(","))
    assert table.config.properties["hoodie.table.metadata.partitions"] == left


def test_t14_metadata_is_written_with_the_whole_schema_never_with_a_projection(
    storage: MemoryStorage, golden: GoldenTable
) -> None:
    commit = create(storage, indexes=["record_index"]).bulk_insert(rows("k1"))
    ours = {
        block.headers[Header.SCHEMA]
        for paths in metadata_logs(storage, commit.instant).values()
        for path in paths
        for block in read_blocks(storage.read(path), path)
        if Header.SCHEMA in block.headers
    }
    javas = {
        block.headers[Header.SCHEMA]
        for path in (golden("mor_record_index_global") / METADATA).glob("record_index/.*.log.*")
        if not path.name.endswith(".crc")
        for block in read_blocks(path.read_bytes(), path.name)
        if Header.SCHEMA in block.headers
    }
    assert ours
    assert {fields(text) for text in ours} == {fields(text) for text in javas}


def test_t15_keys_and_partitions_are_spelled_as_java_spells_them(storage: MemoryStorage) -> None:
    schema = pa.schema([("id", pa.bool_()), ("p", pa.bool_()), ("f", pa.float64())])
    table = Table.create(storage.location.uri, schema, key=["id"], partition=["p"], storage=storage)
    table.upsert(pa.table({"id": [True, False], "p": [True, False], "f": [1e-5, 1e7]}, schema))
    assert table.partitions() == ("p=false", "p=true")
    assert sorted(table.read_arrow()["_hoodie_record_key"].to_pylist()) == ["false", "true"]


def test_t16_the_filter_arrives_in_the_file(storage: MemoryStorage) -> None:
    create(storage).bulk_insert(rows("k1", "k2"))
    (path,) = base_files(storage)
    text = footer(storage, path)[BLOOM]
    bloom = parse_bloom(text, "DYNAMIC_V0", path)
    assert bloom.might_contain(pa.array(["k1", "k2", "k3"])).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("name", "length"),
    [("cow_timestamp_ntz", 1), ("cow_all_types", 2), ("mor_bucket_simple", 4)],
)
def test_t17_the_filter_is_that_of_java_for_keys_of_any_length(
    storage: MemoryStorage, golden: GoldenTable, name: str, length: int
) -> None:
    file = sorted(golden(name).rglob("[0-9a-f]*.parquet"))[0]
    keys = pq.read_table(file, columns=["_hoodie_record_key"], partitioning=None)
    javas = pq.read_metadata(file).metadata[BLOOM]
    ids = keys["_hoodie_record_key"].to_pylist()
    assert {len(id_) for id_ in ids} == {length}
    sized = {"hoodie.index.bloom.num_entries": DEFAULT_ENTRIES}
    create(storage).bulk_insert(rows(*ids), options=sized)
    (path,) = base_files(storage)
    assert footer(storage, path)[BLOOM] == javas


def test_t18_a_write_into_a_pending_clustering_is_refused_and_changes_nothing(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("mor_clustering_requested")
    table = Table(str(path))
    before = table.read_arrow()
    (plan,) = [one for one in table.timeline().pending() if one.action is Action.CLUSTERING]
    with pytest.raises(Conflict, match=plan.requested):
        table.upsert(before.select([n for n in before.column_names if not n.startswith("_")]))
    assert table.read_arrow().equals(before)
    assert plan in table.timeline().pending()


def fields(schema: str) -> tuple[str, ...]:
    """The columns of an Avro schema, but for those that every table has."""
    names = (field["name"] for field in json.loads(schema)["fields"])
    return tuple(name for name in names if not name.startswith("_hoodie_"))


def footer(storage: Storage, path: str) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = pq.read_metadata(pa.BufferReader(storage.read(path))).metadata
    return found


def keys_in(storage: Storage, path: str) -> list[str]:
    content = pq.read_table(pa.BufferReader(storage.read(path)), columns=["_hoodie_record_key"])
    keys: list[str] = content["_hoodie_record_key"].to_pylist()
    return keys
