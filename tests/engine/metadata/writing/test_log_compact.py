"""Log compaction of the metadata table: it says the same from fewer logs, and can be taken back."""

from contextlib import suppress

import pyarrow as pa
import pytest

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import commit, compaction
from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.changes import Located, Removed, TableChange
from lakewarden.engine.metadata.reading.column_stats import column_ranges, partition_ranges
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.metadata.writing.log_compact import (
    LogCompactionDraft,
    compact_logs,
    draft_log_compaction,
)
from lakewarden.engine.metadata.writing.writer import write_change
from lakewarden.engine.testing.fault_plan import crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from tests.engine.metadata.table_in_memory import TableInMemory, new_file

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"
ENABLED = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "4",
}


class Table(TableInMemory):
    """A table whose writes compact the logs of its metadata table."""

    settings = Settings.of(arguments=ENABLED)

    def tell(self, change: TableChange) -> None:
        write_change(
            self.metadata, self.definitions, change, self.times, self.ports, settings=self.settings
        )

    @property
    def state(self) -> MetadataTable:
        return load_metadata_table(self.storage, self.config)

    def log_compactions(self) -> list[InstantFiles]:
        files = self.state.timeline.active.files
        return [one for one in files if one.started_as is Action.LOG_COMPACTION]

    def logs(self, instant: str) -> list[tuple[str, tuple[Block, ...]]]:
        """The logs of an instant, and their blocks."""
        state = self.state
        return [
            (partition, read_blocks(state.storage.read(f"{partition}/{file.name}"), file.name))
            for partition in state.partitions()
            for file in state.files(partition)
            if isinstance(file, LogFile) and file.instant == instant
        ]


def change_of(table: TableInMemory, number: int, instant: str) -> TableChange:
    """A change by one key in a file of its own; the next one removes both, and so on."""
    name = f"{GROUP}_0-0-0_{number}.parquet"
    return TableChange(
        instant=instant,
        new_files=(new_file("a", name, [f"key {number}"], [float(number)]),),
        located=(Located(pa.array([f"key {number}"]), FileGroupId("a", GROUP)),),
        removed=(Removed(pa.array([f"key {number - 1}"]), "a"),) if number % 2 else (),
        deleted_files={"a": (f"{GROUP}_0-0-0_{number - 2}.parquet",)},
        deleted_partitions=("b",) if number == 2 else (),
        live_files={"a": (name,)},
    )


def write(table: TableInMemory, number: int) -> str:
    instant = table.begin()
    table.tell(change_of(table, number, instant))
    table.complete(instant)
    return instant


def written(table: TableInMemory, writes: int) -> TableInMemory:
    table.create()
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


@pytest.mark.parametrize("writes", [4, 5, 14])
def test_it_says_what_it_would_say_without(writes: int) -> None:
    with_it, without = written(Table(), writes), written(TableInMemory(), writes)
    assert isinstance(with_it, Table)
    assert with_it.log_compactions()
    assert said(with_it) == said(without)


def test_it_is_left_out_unless_switched_on() -> None:
    class Unset(Table):
        settings = Settings()

    table = written(Unset(), 8)
    assert isinstance(table, Table)
    assert table.log_compactions() == []


def test_it_completes_as_a_deltacommit_older_than_the_write_it_comes_with() -> None:
    table = written(Table(), 4)
    assert isinstance(table, Table)
    files = table.log_compactions()[-1]
    active = table.state.timeline.active
    newest = table.timeline.active.completed()[-1].requested
    assert files.instant.action is Action.DELTA_COMMIT
    assert files.instant.requested < newest
    metadata = commit.decode(active.read(files.instant), "completed")
    assert (metadata.operation_type, metadata.compacted) == ("LOG_COMPACT", True)
    assert files.requested is not None
    plan = compaction.decode_plan(active.read(files.requested.instant), "plan")
    assert plan.preserve_hoodie_metadata
    assert plan.strategy == compaction.LOG_COMPACTION


def test_a_log_names_the_instants_that_it_stands_for() -> None:
    table = written(Table(), 4)
    assert isinstance(table, Table)
    files = table.log_compactions()[0]
    writes = [one.requested for one in table.timeline.active.completed()]
    before = [one for one in writes if one < files.instant.requested]
    for _, blocks in table.logs(files.instant.requested):
        for block in blocks:
            assert block.compacted_instants[-1] == before[-1]
            assert set(before) <= set(block.compacted_instants)


def test_it_waits_while_an_older_write_is_under_way() -> None:
    table = Table()
    table.create()
    slow = table.begin()
    for number in range(4):
        write(table, number)
    assert table.log_compactions() == []
    table.tell(change_of(table, 9, slow))
    table.complete(slow)
    write(table, 6)
    assert table.log_compactions()


def test_a_rollback_takes_it_back_where_it_holds_what_is_undone() -> None:
    class Always(Table):
        settings = Settings.of(
            arguments={**ENABLED, "hoodie.metadata.log.compaction.blocks.threshold": "2"}
        )

    table, without = Always(), TableInMemory()
    for one in (table, without):
        written(one, 1)
    last = write(table, 1), write(without, 1)
    # The next write compacts logs, and with them those of the one before.
    write(table, 2)
    write(without, 2)
    (*_, files) = table.log_compactions()
    taken = [block for _, blocks in table.logs(files.instant.requested) for block in blocks]
    assert any(last[0] in block.compacted_instants for block in taken)
    for one, instant in zip((table, without), last, strict=True):
        one.roll_back(instant, one.times.next())
    assert files.instant not in [one.instant for one in table.log_compactions()]
    assert said(table) == said(without)


def test_files_that_are_gone_stay_gone() -> None:
    table = written(Table(), 9)
    (files,) = MetadataListing(table.metadata.partition("files")).files().values()
    assert [file.name for file in files] == [f"{GROUP}_0-0-0_{number}.parquet" for number in (7, 8)]


def test_one_of_java_that_is_newer_than_a_write_under_way_comes_before_it() -> None:
    """Java gives it a time of its own, whatever is pending."""
    table, without = Table(), TableInMemory()
    for one in (table, without):
        written(one, 2)
        slow = one.begin()
        if isinstance(one, Table):
            times = one.times
            ours = draft_log_compaction(one.state, one.config, times, blocks_min=2)
            draft = LogCompactionDraft(ours.slices, times.next())
            compact_logs(one.state, draft, one.ports)
        one.tell(change_of(one, 2, slow))
        one.complete(slow)
    assert said(table) == said(without)


def test_what_a_crash_left_is_withdrawn_by_the_next_write() -> None:
    before = written(Table(), 3)
    rehearsal = FaultyStorage(_copy(before).storage)
    once = Table(rehearsal, before.clock)
    once.tell(change_of(once, 3, once.begin()))
    expected = said(written(TableInMemory(), 5))
    for plan in list(crash_plans(rehearsal.calls))[::31]:
        table = _copy(before)
        instant = table.begin()
        with suppress(Crashed):
            broken = Table(FaultyStorage(table.storage, plan), table.clock)
            broken.tell(change_of(broken, 3, instant))
        table.tell(change_of(table, 3, instant))
        table.complete(instant)
        write(table, 4)
        assert said(table) == expected, plan
        assert all(one.completed for one in table.log_compactions()), plan


def test_writes_are_refused_when_it_cannot_be_compacted_and_has_grown_too_much() -> None:
    class Small(Table):
        settings = Settings.of(arguments={"hoodie.metadata.max.deltacommits.when_pending": "6"})

    table = Small()
    table.create()
    stuck = table.begin()
    table.tell(TableChange(instant=stuck))
    for number in range(2):
        write(table, number)
    with pytest.raises(Conflict) as refused:
        write(table, 2)
    assert refused.value.code == "metadata_table_grows"
    assert refused.value.parameters["instant"] == stuck


def test_compaction_comes_after_as_many_deltacommits_as_are_set() -> None:
    class Often(Table):
        settings = Settings.of(arguments={"hoodie.metadata.compact.max.delta.commits": "6"})

    table = written(Often(), 3)
    assert isinstance(table, Table)
    assert len(table.state.timeline.active.pending((Action.COMPACTION,))) == 1


def _copy(table: TableInMemory) -> Table:
    copied = Table()
    for entry in table.storage.walk(""):
        copied.storage.put(entry.path, table.storage.read(entry.path))
    copied.clock.advance(table.clock.now_ms() - copied.clock.now_ms())
    return copied
