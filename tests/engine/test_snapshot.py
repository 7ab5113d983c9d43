"""Snapshots: what is decided from one is decided from one moment of the table, or refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.reading.validity import Validity
from lakewarden.engine.metadata.writing.compact import publish_compaction, withdraw_compactions
from lakewarden.engine.read.query.answer import Answer
from lakewarden.engine.read.query.plan_query import Query, plan_query
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.snapshot import Memory, Snapshot, load_snapshot
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import load_config
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.next_time import TimeSource
from lakewarden.engine.write.request import Incoming, WriteRequest
from tests.crash.dying_operations import ports
from tests.engine.transaction.hooked import Hook

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
KEYS = ("k0", "k1", "k2")
INDEXES = ("SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX", "BUCKET")


class SnapshotTable:
    """A table with three rows of value 0, and those who change it."""

    def __init__(self, kind: str = "cow", index: str = "SIMPLE", **properties: object) -> None:
        self.clock = ManualClock()
        self.storage: MemoryStorage = fresh_memory_storage(clock=self.clock)
        self._seeds = iter(range(1, 1000))
        Table.create(
            "",
            SCHEMA,
            key=["id"],
            type=kind,
            index=index,
            properties={
                "hoodie.index.bloom.num_entries": 50,
                "hoodie.bucket.index.num.buckets": 1,
                **{name.replace("__", "."): value for name, value in properties.items()},
            },
            storage=self.storage,
            ports=self._ports(),
        )
        self.upsert(0)

    def _ports(self) -> Ports:
        return ports(self.clock, next(self._seeds))

    def table(self, storage: Storage | None = None) -> Table:
        return Table.on(storage or self.storage, self._ports())

    def upsert(self, value: int) -> None:
        self.table().upsert([{"id": key, "v": value} for key in KEYS])

    def go_on(self, commits: int = 3) -> None:
        """Others commit and clean, so that nothing of the first commits is there any more."""
        table = self.table()
        for value in range(1, commits + 1):
            self.upsert(value)
            if table.config.table_type.name == "MERGE_ON_READ":
                table.compaction.schedule_and_run()
        assert table.clean(commits_retained=1).files_deleted

    def values(self, **query: object) -> dict[str, int]:
        rows = self.table().read_arrow(["id", "v"], **query).to_pylist()  # type: ignore[arg-type]
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: row["v"] for row in rows}


def scanned(snapshot: Snapshot, *, use_metadata: bool) -> int:
    scan = plan_query(snapshot, Query(use_metadata=use_metadata))
    return scan.table(snapshot.storage, LocalExecutor(1)).num_rows


@pytest.mark.parametrize("use_metadata", [True, False])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_snapshot_never_shows_fewer_rows_after_a_clean(kind: str, use_metadata: bool) -> None:
    world = SnapshotTable(kind)
    snapshot = load_snapshot(world.storage)
    world.go_on()
    with pytest.raises((Conflict, CorruptTable)) as error:
        scanned(snapshot, use_metadata=use_metadata)
    assert error.value.code in ("missing_file", "snapshot_outdated")


def test_a_snapshot_stays_as_it_is_while_others_compact_the_metadata_table() -> None:
    world = SnapshotTable(hoodie__metadata__compact__max__delta__commits=2)
    taken = load_snapshot(world.storage)
    before = taken.file_groups(taken.visibility(), None, use_metadata=True)
    # What the clean has removed is not in the base files of the compaction after it.
    world.go_on()
    for value in range(4, 8):
        world.upsert(value)
    later = replace(taken)
    assert later.file_groups(later.visibility(), None, use_metadata=True) == before
    assert later.metadata.timeline.active.completed((Action.COMMIT,))


def test_what_is_told_during_a_restore_counts_with_it() -> None:
    """Java tells the metadata table at the end of a restore at a time of its own."""
    world = SnapshotTable()
    first = load_snapshot(world.storage).timeline.active.completed()[0]
    world.upsert(1)
    world.clock.advance(1000)
    world.table().restore(first.requested)
    snapshot = load_snapshot(world.storage)
    [restore] = snapshot.timeline.active.completed((Action.RESTORE,))
    assert restore.completed is not None
    validity = Validity.of(snapshot.timeline, snapshot.metadata.timeline)
    assert validity.is_valid(restore.completed)
    assert not validity.is_later(restore.completed)
    after = str(int(restore.completed) + 1)
    assert not validity.is_valid(after)
    assert validity.is_later(after)


@pytest.mark.parametrize("use_metadata", [True, False])
def test_a_read_begins_anew_where_files_vanish_before_the_first_row(use_metadata: bool) -> None:
    world = SnapshotTable()
    calls = 0
    at = 1
    while True:
        world = SnapshotTable()
        hook = Hook(at, world.go_on)
        found = world.table(hook.storage(world.storage)).read_arrow(
            ["id", "v"], use_metadata=use_metadata
        )
        if not hook.has_happened:
            break
        calls += 1
        assert found.num_rows == len(KEYS), f"after call {at}"
        at += 1
    assert calls > 5


@pytest.mark.parametrize("filter_", [[("v", "=", 0)], [("id", "in", list(KEYS))]], ids=str)
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop_index("column_stats"),
        lambda table: table.drop_index("record_index"),
        lambda table: table.refresh_index("record_index"),
        lambda table: table.delete_metadata_table(),
    ],
    ids=["statistics dropped", "record index dropped", "record index built anew", "all dropped"],
)
def test_a_read_begins_anew_where_an_index_goes_that_it_uses(
    change: Callable[[Table], object], filter_: list[tuple[str, str, object]]
) -> None:
    at, is_over = 1, False
    while not is_over:
        world = SnapshotTable(index="RECORD_INDEX")
        hook = Hook(at, partial(change, world.table()))
        reader = world.table(hook.storage(world.storage))
        assert reader.read_arrow(["id", "v"], filter_).num_rows == len(KEYS), f"after call {at}"
        at, is_over = at + 1, not hook.has_happened
    assert at > 10


@pytest.mark.parametrize("filter_", [None, [("id", "in", list(KEYS))]], ids=str)
def test_a_read_begins_anew_where_a_compaction_of_the_metadata_table_is_withdrawn(
    filter_: list[tuple[str, str, object]] | None,
) -> None:
    at, is_over = 1, False
    while not is_over:
        world = SnapshotTable(index="RECORD_INDEX")
        plan_metadata_compaction(world)
        hook = Hook(at, partial(withdraw_metadata_compaction, world))
        reader = world.table(hook.storage(world.storage))
        assert reader.read_arrow(["id", "v"], filter_).num_rows == len(KEYS), f"after call {at}"
        at, is_over = at + 1, not hook.has_happened
    assert at > 8


def plan_metadata_compaction(world: SnapshotTable) -> None:
    """Plan one, and leave it at that."""
    state = load_metadata_table(world.storage, load_config(world.storage))
    active = state.timeline.active
    times = TimeSource(world.clock, active.layout.zone, active.newest_time())
    assert publish_compaction(state, state.config, times) is not None


def withdraw_metadata_compaction(world: SnapshotTable) -> None:
    assert withdraw_compactions(load_metadata_table(world.storage, load_config(world.storage)))


def test_batches_that_vanish_later_name_the_clean_that_took_them() -> None:
    world = SnapshotTable(hoodie__parquet__small__file__limit=0)
    world.table().bulk_insert([{"id": f"other{n}", "v": n} for n in range(3)])
    batches = world.table().read_batches(["id"])
    next(batches)
    for value in range(1, 4):
        world.upsert(value)
        world.table().upsert([{"id": f"other{n}", "v": value} for n in range(3)])
    world.table().clean(commits_retained=1)
    with pytest.raises(Conflict) as error:
        list(batches)
    assert error.value.code == "files_vanished"
    assert "clean" in str(error.value)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_write_whose_snapshot_was_cleaned_away_conflicts(kind: str, index: str) -> None:
    world = SnapshotTable(kind, index)
    with pytest.raises(Conflict) as error:
        world.table().write(request(world.go_on))
    assert error.value.code in ("files_vanished", "write_conflict", "snapshot_outdated")
    assert world.values() == dict.fromkeys(KEYS, 3)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_retry_mends_a_write_whose_snapshot_was_cleaned_away(kind: str, index: str) -> None:
    world = SnapshotTable(kind, index)
    once = iter([world.go_on])
    done = world.table().write(
        request(lambda: next(once, lambda: None)()),
        {"hoodie.write.num.retries.on.conflict.failures": 1},
    )
    assert (done.rows_inserted, done.rows_updated) == (0, 1)
    assert world.values() == {"k0": 9, "k1": 3, "k2": 3}


@pytest.mark.parametrize("index", ["RECORD_INDEX", "SIMPLE", "BLOOM"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_write_conflicts_with_a_clustering_that_moved_its_keys(kind: str, index: str) -> None:
    world = SnapshotTable(kind, index, hoodie__parquet__small__file__limit=0)
    world.table().bulk_insert([{"id": "more", "v": 0}])
    with pytest.raises(Conflict) as error:
        world.table().write(request(lambda: world.table().clustering.schedule_and_run()))
    assert error.value.code == "write_conflict"
    assert world.values() == {**dict.fromkeys(KEYS, 0), "more": 0}


def request(meanwhile: Callable[[], object]) -> WriteRequest:
    """An upsert whose rows take their time, as those of a query do."""

    def derive(_: Snapshot) -> Incoming:
        meanwhile()
        return Incoming(pa.Table.from_pylist([{"id": "k0", "v": 9}], schema=SCHEMA))

    return WriteRequest(operation=Operation.UPSERT, incoming=derive)


def test_a_read_of_an_unchanged_table_looks_only_whether_it_is_unchanged() -> None:
    storage = FaultyStorage(SnapshotTable(index="RECORD_INDEX").storage)
    table = Table.on(storage)
    table.lookup(["k0"])
    begin = len(storage.calls)
    assert table.lookup(["k0"]).num_rows == 1
    asked = [(call.operation, call.path) for call in storage.calls[begin:]]
    assert asked[:3] == [
        ("read_if_present", ".hoodie/hoodie.properties"),
        ("list", ".hoodie/timeline"),
        ("list", ".hoodie/metadata/.hoodie/timeline"),
    ]
    # Besides, the file with the row.
    assert [operation for operation, _ in asked[3:]] == ["open"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_read_sees_what_others_did_since_the_last_one(kind: str) -> None:
    by = SnapshotTable(kind, "RECORD_INDEX")
    reader = by.table()
    before = reader.state()
    assert reader.state() is before
    changes: list[Callable[[], object]] = [
        lambda: by.upsert(5),
        lambda: by.table().compaction.schedule_and_run() if kind == "mor" else None,
        lambda: by.table().delete(["k1"]),
        lambda: by.table().create_index("by_value", ["v"], "secondary_index"),
        lambda: by.upsert(6),
        lambda: by.table().drop_index("by_value"),
        lambda: by.table().maintain_metadata(),
        lambda: by.table().delete_metadata_table(),
        lambda: by.upsert(7),
        lambda: by.table().create_metadata_table(),
        lambda: by.table().clean(commits_retained=1),
    ]
    wanted = [("v", ">", -1)]
    for change in changes:
        change()
        for _ in range(2):
            found, fresh = (
                one.read_arrow(["id", "v"], wanted).sort_by("id") for one in (reader, by.table())
            )
            assert found.equals(fresh)
            found, fresh = (one.lookup(["k1"], ["v"]) for one in (reader, by.table()))
            assert found.equals(fresh)
        kept, now = reader.state(), by.table().state()
        assert kept.config.properties == now.config.properties
        if now.config.metadata_partitions:
            assert kept.metadata.timeline.active.files == now.metadata.timeline.active.files


def test_a_snapshot_that_takes_much_memory_is_not_kept() -> None:
    storage = SnapshotTable().storage
    for bytes_max, is_kept in ((1 << 20, True), (1 << 9, False)):
        memory = Memory(kept_bytes_max=bytes_max)
        plan = partial(plan_query, query=Query())
        assert Answer(storage, plan, memory).table(LocalExecutor()).num_rows == len(KEYS)
        assert (memory.kept is not None) == is_kept
