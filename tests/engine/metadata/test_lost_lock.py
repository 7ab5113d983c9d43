"""A writer of the metadata table that paused so long that another one got the lock meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.compact import finish_compactions
from lakewarden.engine.metadata.writing.writer import write_change
from lakewarden.engine.run.executor import ResultT, TaskT
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.timeline.instants.instant import Action
from tests.engine.metadata.table_in_memory import TableInMemory, new_file

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"
# Four partitions were initialised, so that the write after these compacts first.
WRITES = 6


@dataclass
class PausingExecutor:
    """Does nothing for a while before the task of that number; others do not stand still."""

    at_task: int
    meanwhile: Callable[[], None] | None
    workers: int = 1

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        for number, task in enumerate(tasks):
            if number == self.at_task and self.meanwhile is not None:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()
            yield function(task)


class Died(Exception):
    """The process is no more."""


def die() -> None:
    raise Died


def tell_pausing(
    table: TableInMemory, change: TableChange, at_task: int, meanwhile: Callable[[], None]
) -> None:
    ports = Ports(clock=table.clock, executor=PausingExecutor(at_task, meanwhile))
    write_change(table.metadata, table.definitions, change, table.times, ports)


def listed(table: TableInMemory) -> set[str]:
    files = MetadataListing(table.metadata.partition("files")).files()
    return {file.name for one in files.values() for file in one}


def name(number: int) -> str:
    return f"{GROUP}_{number}-0-0_{number}.parquet"


@pytest.mark.parametrize("at_task", [0, 1, 13])
def test_a_compaction_is_completed_once(at_task: int) -> None:
    table = TableInMemory().create()
    for number in range(WRITES):
        table.write(new_file("a", name(number), [str(number)], [0.5]))
    change = TableChange(instant=table.begin())

    def somebody_else_writes() -> None:
        table.write(new_file("a", name(WRITES), ["k"], [0.5]))

    with pytest.raises(Conflict) as lost:
        tell_pausing(table, change, at_task, somebody_else_writes)
    assert lost.value.code == "metadata_completed_elsewhere"
    active = load_metadata_table(table.storage, table.config).timeline.active
    assert len(active.completed((Action.COMMIT,))) == 1
    assert listed(table) == {name(number) for number in range(WRITES + 1)}


def test_who_finishes_a_compaction_too_late_does_not_take_its_files_away() -> None:
    table = TableInMemory().create()
    for number in range(WRITES):
        table.write(new_file("a", name(number), [str(number)], [0.5]))
    change = TableChange(instant=table.begin())
    with pytest.raises(Died):
        tell_pausing(table, change, 1, die)
    late = load_metadata_table(table.storage, table.config)
    table.write(new_file("a", name(WRITES), ["k"], [0.5]))
    ports = Ports(clock=table.clock, executor=PausingExecutor(0, die))
    with pytest.raises(Died):
        finish_compactions(late, ports)
    state = load_metadata_table(table.storage, table.config)
    (compaction,) = state.timeline.active.completed((Action.COMMIT,))
    reported = commit.decode(state.timeline.active.read(compaction), "compaction")
    for stats in reported.partition_to_write_stats.values():
        assert all(state.storage.stat(one.path or "") is not None for one in stats)


@pytest.mark.parametrize("at_task", [0, 1])
def test_what_a_later_attempt_has_told_stays(at_task: int) -> None:
    table = TableInMemory().create()
    instant = table.begin()
    mine = TableChange(instant=instant, new_files=(new_file("a", name(1), ["k"], [0.5]),))
    theirs = TableChange(instant=instant, new_files=(new_file("a", name(2), ["k"], [0.5]),))

    def the_next_attempt_commits() -> None:
        table.tell(theirs)
        table.complete(instant)

    with pytest.raises(Conflict) as lost:
        tell_pausing(table, mine, at_task, the_next_attempt_commits)
    assert lost.value.code == "metadata_completed_elsewhere"
    assert listed(table) == {name(2)}


def test_what_was_taken_back_meanwhile_is_not_completed() -> None:
    table = TableInMemory().create()
    instant = table.begin()
    change = TableChange(instant=instant, new_files=(new_file("a", name(1), ["k"], [0.5]),))

    def somebody_rolls_it_back() -> None:
        table.roll_back(instant, table.times.next())

    with pytest.raises(Conflict) as lost:
        tell_pausing(table, change, 1, somebody_rolls_it_back)
    assert lost.value.code == "metadata_completed_elsewhere"
    state = load_metadata_table(table.storage, table.config)
    assert state.deltacommit(instant) is None


def test_what_others_have_begun_since_the_snapshot_is_no_stray() -> None:
    table = TableInMemory().create()
    late = TableChange(instant=table.begin(), new_files=(new_file("a", name(1), ["k"], [0.5]),))
    seen = table.metadata
    theirs = table.begin()
    table.tell(TableChange(instant=theirs, new_files=(new_file("a", name(2), ["l"], [0.5]),)))
    write_change(seen, table.definitions, late, table.times, table.ports)
    table.complete(late.instant)
    table.complete(theirs)
    assert listed(table) == {name(1), name(2)}
