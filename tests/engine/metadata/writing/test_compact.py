"""Compaction of the metadata table: nothing is lost, whoever finishes it, and it comes in time."""

from contextlib import suppress

import pyarrow as pa
import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit, compaction
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange
from lakewarden.engine.metadata.reading.column_stats import column_ranges, partition_ranges
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.testing.fault_plan import Fault, FaultKind, FaultPlan, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.metadata.table_in_memory import TableInMemory, new_file
from tests.sampling import sample

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"
# Four partitions were initialised, so this many writes make ten deltacommits.
WRITES = 6


def write(table: TableInMemory, number: int) -> None:
    """A write of one key into a file of its own; the next write removes both, and so on."""
    name = f"{GROUP}_0-0-0_{number}.parquet"
    key = pa.array([f"key {number}"])
    gone = pa.array([f"key {number - 1}"])
    table.write(
        new_file("a", name, [f"key {number}"], [float(number)]),
        located=(Located(key, FileGroupId("a", GROUP)),),
        removed=(Removed(gone, "a"),) if number % 2 else (),
        deleted_files={"a": (f"{GROUP}_0-0-0_{number - 2}.parquet",)},
        live_files={"a": (name,)},
    )


def written(writes: int) -> TableInMemory:
    table = TableInMemory().create()
    for number in range(writes):
        write(table, number)
    return table


def said(table: TableInMemory) -> object:
    """Everything that the metadata table says."""
    metadata = table.metadata
    files = MetadataListing(metadata.partition("files")).files()
    ranges = column_ranges(metadata.partition("column_stats"), ["id", "v"], ["a"])
    whole = partition_ranges(metadata.partition("partition_stats"), ["id", "v"], ["a"])
    return files, ranges, whole, all_locations(metadata.record_index())


def compactions(table: TableInMemory) -> list[str]:
    state = load_metadata_table(table.storage, table.config)
    return [one.requested for one in state.timeline.active.completed((Action.COMMIT,))]


def test_the_write_after_ten_deltacommits_plans_a_compaction_without_its_own() -> None:
    table = written(WRITES)
    assert compactions(table) == []
    change = TableChange(instant=table.begin())
    assert table.tell(change).has_plan
    table.complete(change.instant)
    assert compactions(table) == []
    assert table.compact()
    assert len(compactions(table)) == 1
    table.roll_back(change.instant, table.times.next())


def test_compaction_comes_again_after_ten_more() -> None:
    table = written(WRITES + 1 + 10)
    assert len(compactions(table)) == 2


def test_compaction_changes_nothing_of_what_is_said() -> None:
    table = written(WRITES)
    before = said(table)
    assert table.compact(deltacommits_min=1)
    assert said(table) == before


def test_every_slice_with_logs_gets_a_base_file_be_it_empty() -> None:
    table = written(WRITES + 1)
    state = load_metadata_table(table.storage, table.config)
    active = state.timeline.active
    (instant,) = active.completed((Action.COMMIT,))
    metadata = commit.decode(active.read(instant), "compaction")
    assert metadata.compacted
    assert metadata.operation_type == "COMPACT"
    stats = [one for stats in metadata.partition_to_write_stats.values() for one in stats]
    assert len(stats) == 1 + 1 + 1 + 10
    assert 0 in {one.num_writes for one in stats}
    for one in stats:
        entry = state.storage.stat(one.path or "")
        assert entry is not None
        assert entry.size_bytes == one.file_size_in_bytes


def test_the_plan_names_the_initial_logs() -> None:
    table = written(WRITES + 1)
    state = load_metadata_table(table.storage, table.config)
    (name,) = (
        entry.path
        for entry in state.storage.list(state.layout.folder).files
        if entry.name.endswith(".compaction.requested")
    )
    plan = compaction.decode_plan(state.storage.read(name), name)
    first = next(one for one in plan.operations if one.file_id == "partition-stats-0000-0")
    assert first.data_file_path is None
    assert first.base_instant_time == "00000000000000003"
    assert first.delta_file_paths[0] == ".partition-stats-0000-0_00000000000000003.log.1_0-0-0"


def test_no_compaction_while_a_write_that_is_told_is_pending() -> None:
    table = written(WRITES - 1)
    pending = table.begin()
    table.tell(TableChange(instant=pending))
    write(table, WRITES)
    assert table.compact(deltacommits_min=1) is None
    table.complete(pending)
    assert table.compact(deltacommits_min=1)


def test_what_has_been_compacted_cannot_be_rolled_back() -> None:
    table = TableInMemory().create()
    first = table.write(new_file("a", f"{GROUP}_0-0-0_9.parquet", ["9"], [1.0]))
    for number in range(WRITES):
        write(table, number)
    with pytest.raises(InvalidRequest) as refused:
        table.roll_back(first, table.times.next())
    assert refused.value.code == "metadata_compacted"


def test_a_crash_at_any_call_is_made_good_by_the_next_attempt() -> None:
    table = written(WRITES)
    before = said(table)
    rehearsal = FaultyStorage(table.storage)
    assert TableInMemory(rehearsal, table.clock).compact(deltacommits_min=1)
    requested = next(one for one in rehearsal.calls if one.path.endswith(".compaction.requested"))
    half = FaultPlan((Fault(requested.number, FaultKind.TORN, is_fatal=True),))
    for plan in sample(list(crash_plans(rehearsal.calls)), 23):
        table = written(WRITES)
        with suppress(Crashed):
            broken = TableInMemory(FaultyStorage(table.storage, plan), table.clock)
            broken.compact(deltacommits_min=1)
        assert said(table) == before, plan
        # The lock and the heartbeats of the dead expire.
        table.storage.delete(".hoodie/lock")
        table.clock.advance(DEAD_AFTER_MS)
        write(table, WRITES)
        # Who finds half a plan takes it away, and leaves the next one to the next writer.
        assert len(compactions(table)) == (0 if plan == half else 1), plan
        state = load_metadata_table(table.storage, table.config)
        assert not state.timeline.active.pending(), plan
        table.compact(deltacommits_min=1)
        assert compactions(table), plan
        assert not state.storage.list(LEDGER_FOLDER).folders, plan
