"""Writing the archived timeline: what Java would write, and nothing lost at any crash."""

from collections.abc import Callable
from contextlib import suppress

import pyarrow.parquet as pq
import pytest

from lakewarden.engine.kernel.errors import Defect
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.fault_plan import FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.archived.manifest import LsmFile, manifest_versions
from lakewarden.engine.timeline.archived.reader import LsmArchive
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.archived.writer import (
    LsmLimits,
    archive,
    clean,
    compact_and_clean,
    files_to_merge,
)
from lakewarden.engine.timeline.instants.instant import Action, Instant, State
from tests.golden_tables import GoldenTable

HISTORY = ".hoodie/timeline/history"
BY_THREES = LsmLimits(batch_size=3)


def row(requested: int, action: Action = Action.COMMIT) -> ArchivedInstant:
    instant = Instant(f"{requested:017d}", action, State.COMPLETED, f"{requested + 1:017d}")
    return ArchivedInstant(instant, b"metadata", None)


def read_back(storage: MemoryStorage) -> list[ArchivedInstant | None]:
    reader = LsmArchive(storage, HISTORY)
    return [reader.read(instant) for instant in reader.instants()]


def names(storage: MemoryStorage) -> list[str]:
    return [entry.name for entry in storage.list(HISTORY).files]


def test_archived_instants_are_read_back_in_order() -> None:
    storage = fresh_memory_storage()
    archive(storage, HISTORY, [row(20), row(10, Action.CLEAN)])
    archive(storage, HISTORY, [row(30)])
    assert read_back(storage) == [row(10, Action.CLEAN), row(20), row(30)]


def test_an_archival_makes_a_file_a_manifest_and_a_version() -> None:
    storage = fresh_memory_storage()
    archive(storage, HISTORY, [row(1), row(2)])
    assert names(storage) == [f"{1:017d}_{2:017d}_0.parquet", "_version_", "manifest_1"]
    assert storage.read(f"{HISTORY}/_version_") == b"1"


def test_a_file_has_the_footer_codec_and_columns_of_javas(golden: GoldenTable) -> None:
    storage = fresh_memory_storage()
    archive(storage, HISTORY, [row(1)])
    ours = pq.ParquetFile(storage.open(f"{HISTORY}/{1:017d}_{1:017d}_0.parquet"))
    javas = pq.ParquetFile(next(golden("mor_archived_lsm_levels").rglob("history/*_0.parquet")))
    assert ours.metadata.metadata == javas.metadata.metadata
    for at in range(ours.metadata.num_columns):
        mine, other = (file.metadata.row_group(0).column(at) for file in (ours, javas))
        assert (mine.path_in_schema, mine.compression) == (other.path_in_schema, "GZIP")
        assert ours.schema.column(at).max_definition_level == (
            javas.schema.column(at).max_definition_level
        )
        assert ours.schema.column(at).physical_type == javas.schema.column(at).physical_type


def test_archiving_the_same_again_changes_nothing() -> None:
    storage = fresh_memory_storage()
    first = archive(storage, HISTORY, [row(1), row(2)])
    assert archive(storage, HISTORY, [row(1), row(2)]) == first
    assert manifest_versions(storage, HISTORY) == (1,)


def test_archiving_nothing_is_our_own_mistake() -> None:
    with pytest.raises(Defect):
        archive(fresh_memory_storage(), HISTORY, [])


def archive_second(storage: Storage) -> None:
    archive(storage, HISTORY, [row(2)])


def merge(storage: Storage) -> None:
    compact_and_clean(storage, HISTORY, LsmLimits(batch_size=3, kept_snapshots=1))


def with_rows(count: int) -> MemoryStorage:
    storage = fresh_memory_storage()
    for at in range(1, count + 1):
        archive(storage, HISTORY, [row(at)])
    return storage


def plans_of(operation: Callable[[Storage], None], rows: int) -> list[FaultPlan]:
    storage = FaultyStorage(with_rows(rows))
    operation(storage)
    return list(crash_plans(storage.calls))


@pytest.mark.parametrize("plan", plans_of(archive_second, 1), ids=str)
def test_a_crash_of_an_archival_leaves_the_old_or_the_new_archive(plan: FaultPlan) -> None:
    storage = with_rows(1)
    with suppress(Crashed):
        archive_second(FaultyStorage(storage, plan))
    assert read_back(storage) in ([row(1)], [row(1), row(2)])
    archive_second(storage)
    assert read_back(storage) == [row(1), row(2)]


@pytest.mark.parametrize("plan", plans_of(merge, 9), ids=str)
def test_a_crash_of_a_merge_loses_no_instant(plan: FaultPlan) -> None:
    storage = with_rows(9)
    with suppress(Crashed):
        merge(FaultyStorage(storage, plan))
    assert read_back(storage) == [row(at) for at in range(1, 10)]
    for _ in range(3):
        merge(storage)
    assert read_back(storage) == [row(at) for at in range(1, 10)]
    assert len(LsmArchive(storage, HISTORY).snapshot.files) < 9


def test_torn_leftovers_of_a_crash_are_overwritten() -> None:
    storage = with_rows(1)
    storage.put(f"{HISTORY}/{2:017d}_{2:017d}_0.parquet", b"PAR1")
    storage.put(f"{HISTORY}/manifest_2", b'{"files"')
    archive(storage, HISTORY, [row(2)])
    assert read_back(storage) == [row(1), row(2)]


def test_a_version_lost_between_two_of_javas_steps_is_found_by_its_manifest() -> None:
    storage = with_rows(2)
    storage.delete(f"{HISTORY}/_version_")
    assert read_back(storage) == [row(1), row(2)]


def archived_one_by_one(count: int, limits: LsmLimits) -> MemoryStorage:
    storage = fresh_memory_storage()
    for at in range(count):
        archive(storage, HISTORY, [row(at)])
        compact_and_clean(storage, HISTORY, limits)
    return storage


def test_full_levels_are_merged_into_the_next() -> None:
    storage = archived_one_by_one(11, BY_THREES)
    files = LsmArchive(storage, HISTORY).snapshot.files
    assert [(int(file.first), int(file.last), file.level) for file in files] == [
        (0, 8, 2),
        (9, 9, 0),
        (10, 10, 0),
    ]
    assert read_back(storage) == [row(at) for at in range(11)]


def test_merged_rows_stand_in_the_order_of_instants_when_files_overlap() -> None:
    storage = fresh_memory_storage()
    for batch in ([1, 6], [2, 5], [3, 4]):
        archive(storage, HISTORY, [row(at) for at in batch])
    (merged,) = compact_and_clean(storage, HISTORY, BY_THREES).files
    table = pq.read_table(storage.open(f"{HISTORY}/{merged.name}"))
    assert [int(text) for text in table["instantTime"].to_pylist()] == [1, 2, 3, 4, 5, 6]


def test_java_and_we_merge_the_same_instants_into_the_same_files(golden: GoldenTable) -> None:
    table = golden("mor_archived_lsm_levels") / HISTORY
    storage = fresh_memory_storage()
    for file in table.iterdir():
        storage.put(f"{HISTORY}/{file.name}", file.read_bytes())
    java = LsmArchive(storage, HISTORY)
    rows = [java.read(instant) for instant in java.instants(until=java.snapshot.files[0].last)]
    ours = fresh_memory_storage()
    for start in range(0, len(rows), 4):
        archive(ours, HISTORY, [found for found in rows[start : start + 4] if found])
    snapshot = compact_and_clean(ours, HISTORY, LsmLimits(batch_size=7))
    assert [file.name[:35] for file in snapshot.files] == [java.snapshot.files[0].name[:35]]
    assert read_back(ours) == rows


def test_only_the_newest_snapshots_stay() -> None:
    storage = fresh_memory_storage()
    for at in range(6):
        archive(storage, HISTORY, [row(at)])
    assert clean(storage, HISTORY, 3) == 3
    assert manifest_versions(storage, HISTORY) == (4, 5, 6)
    assert read_back(storage) == [row(at) for at in range(6)]


def test_a_clean_removes_files_that_no_kept_snapshot_names() -> None:
    storage = archived_one_by_one(3, BY_THREES)
    merged = f"{0:017d}_{2:017d}_1.parquet"
    assert merged in names(storage)
    # The merge made version 4; its inputs go as soon as no snapshot before it is kept.
    assert f"{0:017d}_{0:017d}_0.parquet" in names(storage)
    clean(storage, HISTORY, 1)
    assert names(storage) == [merged, "_version_", "manifest_4"]


def test_a_clean_keeps_foreign_files() -> None:
    storage = archived_one_by_one(3, BY_THREES)
    storage.put(f"{HISTORY}/x.json", b"{}")
    clean(storage, HISTORY, 1)
    assert "x.json" in names(storage)


def test_files_to_merge_are_the_oldest_of_a_full_level() -> None:
    files = [LsmFile(str(at), str(at), level, 1) for level in (0, 1) for at in range(4)]
    chosen = files_to_merge(files[::-1], 0, BY_THREES)
    assert chosen == tuple(files[:3])
    assert files_to_merge(files[:2], 0, BY_THREES) == ()


def test_a_merge_stops_at_the_size_limit_and_steps_over_large_files() -> None:
    limits = LsmLimits(batch_size=4, merged_size_bytes=100)
    sizes = [101, 60, 60, 1, 1]
    files = [LsmFile(str(at), str(at), 0, size) for at, size in enumerate(sizes)]
    assert files_to_merge(files, 0, limits) == tuple(files[1:3])
