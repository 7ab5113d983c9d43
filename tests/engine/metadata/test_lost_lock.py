"""A writer of the metadata table that paused so long that another one got the lock meanwhile."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest

from lakewarden.engine.file_groups.file_names import BaseFile
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.kernel.errors import Conflict, Unavailable
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.compact import (
    complete_compaction,
    fold,
    left_compaction,
    pending_compactions,
)
from lakewarden.engine.metadata.writing.deltacommit import SHARED_FROM_ENTRIES
from lakewarden.engine.metadata.writing.instants import begin, commit_content, complete_now
from lakewarden.engine.metadata.writing.writer import write_change
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.testing.faults import FaultyStorage
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER
from lakewarden.engine.transaction.metadata_compaction import Compacted
from tests.crash.dying_operations import DEAD_AFTER_MS
from tests.engine.metadata.table_in_memory import TableInMemory, new_file
from tests.engine.transaction.hooked import Hook, PausingExecutor
from tests.engine.transaction.transaction_table import LastFirst

GROUP = "3e93c8a9-fda0-4e8a-91dc-b4ade7dab76d-0"
TIMELINE_LISTED = ("list", ".hoodie/timeline")
# Four partitions were initialised, so that the write after these would plan a compaction.
WRITES = 6


class Died(Exception):
    """The process is no more."""


def die() -> None:
    raise Died


def tell_pausing(
    table: TableInMemory, change: TableChange, at_task: int, meanwhile: Callable[[], None]
) -> None:
    ports = Ports(clock=table.clock, executor=PausingExecutor({at_task: meanwhile}))
    write_change(table.metadata, table.definitions, change, table.times, ports)


def many_files() -> tuple[NewFile, ...]:
    """So many that the logs of their deltacommit are tasks of the executor."""
    one = new_file("a", name(1), ["k"], [0.5])
    return tuple(replace(one, name=name(1 + number)) for number in range(SHARED_FROM_ENTRIES))


def listed(table: TableInMemory) -> set[str]:
    files = MetadataListing(table.metadata.partition("files")).files()
    return {file.name for one in files.values() for file in one}


# `make simulate` pauses at each call.
PAUSES_APART = 1 if "LAKEWARDEN_SEEDS" in os.environ else 9


def name(number: int) -> str:
    return f"{GROUP}_{number}-0-0_{number}.parquet"


@pytest.mark.parametrize("at_task", [0, 1, 12])
def test_a_compaction_that_stands_still_loses_nothing_that_others_tell(at_task: int) -> None:
    table = with_writes()

    def others_write() -> None:
        for number in range(WRITES, WRITES + 12):
            table.write(new_file("a", name(number), [str(number)], [0.5]))

    assert compact_pausing(table, at_task, others_write)
    assert listed(table) == {name(number) for number in range(WRITES + 12)}
    assert len(compactions(table)) == 1


@pytest.mark.parametrize("at_task", [0, 1, 12])
def test_a_compaction_is_completed_once(at_task: int) -> None:
    table = with_writes()

    def it_counts_as_dead_and_another_goes_on() -> None:
        table.clock.advance(DEAD_AFTER_MS)
        assert table.compact()
        table.write(new_file("a", name(WRITES), ["k"], [0.5]))

    with pytest.raises(Conflict) as lost:
        compact_pausing(table, at_task, it_counts_as_dead_and_another_goes_on)
    assert lost.value.code in ("metadata_completed_elsewhere", "superseded")
    assert len(compactions(table)) == 1
    assert listed(table) == {name(number) for number in range(WRITES + 1)}
    assert_all_files_are_there(table)


def test_two_processes_do_not_compact_at_once() -> None:
    table = with_writes()
    assert compact_pausing(table, 1, lambda: assert_nothing_is_done(table))
    assert len(compactions(table)) == 1


def assert_nothing_is_done(table: TableInMemory) -> None:
    assert table.compact(deltacommits_min=1) is None


@pytest.mark.parametrize("at_task", [0, 1, 12])
def test_what_is_rolled_back_while_a_compaction_stands_still_does_not_come_back(
    at_task: int,
) -> None:
    table = with_writes(WRITES - 1)
    last = table.write(new_file("a", name(99), ["99"], [0.5]))

    def it_is_rolled_back() -> None:
        table.roll_back(last, table.times.next())
        table.take_back(last)

    with pytest.raises(Conflict) as lost:
        compact_pausing(table, at_task, it_is_rolled_back)
    assert lost.value.code == "metadata_completed_elsewhere"
    assert listed(table) == {name(number) for number in range(WRITES - 1)}
    assert base_files(table) == set()


def test_base_files_of_a_plan_that_was_withdrawn_and_made_again_are_of_the_new_one() -> None:
    table = with_writes(WRITES - 1)
    last = table.write(new_file("a", name(99), ["99"], [0.5]))

    def it_is_rolled_back_and_compacted() -> None:
        table.roll_back(last, table.times.next())
        table.take_back(last)
        table.clock.advance(DEAD_AFTER_MS)
        assert table.compact(deltacommits_min=1)

    with pytest.raises(Conflict):
        compact_pausing(table, 1, it_is_rolled_back_and_compacted)
    assert listed(table) == {name(number) for number in range(WRITES - 1)}
    assert {instant for _, instant in base_files(table)} == set(compactions(table))


def test_java_takes_a_plan_up_under_the_lock_while_we_fold() -> None:
    """Java rolls back what it finds of it, and folds under names of its own."""
    table = with_writes()

    def java_compacts() -> None:
        state = table.metadata
        (files,) = pending_compactions(state)
        for path, _ in base_files(table):
            state.storage.delete(path)
        planned = left_compaction(state)
        assert planned is not None
        stats = fold(state, planned, LocalExecutor(1), lambda: None)
        renamed = [replace(one, path=(one.path or "").replace("-0-0_", "-7-9_")) for one in stats]
        for one, other in zip(stats, renamed, strict=True):
            state.storage.put(other.path or "", state.storage.read(one.path or ""))
            state.storage.delete(one.path or "")
        assert complete_compaction(state, planned, renamed)
        assert files.instant.requested == planned.instant

    with pytest.raises(Conflict) as lost:
        compact_pausing(table, 5, java_compacts)
    assert lost.value.code == "metadata_completed_elsewhere"
    assert len(compactions(table)) == 1
    assert all("-7-9_" in path for path, _ in base_files(table))
    assert_all_files_are_there(table)


def test_files_that_java_has_rolled_back_are_made_again() -> None:
    table = with_writes()

    def java_dies_after_rolling_back() -> None:
        for path, _ in base_files(table):
            table.metadata.storage.delete(path)

    assert compact_pausing(table, 5, java_dies_after_rolling_back) is None
    assert compactions(table) == []
    assert table.compact()
    assert listed(table) == {name(number) for number in range(WRITES)}
    assert_all_files_are_there(table)


def test_files_of_a_dead_attempt_of_java_are_not_left_beside_ours() -> None:
    table = with_writes()

    def java_dies_after_one_file() -> None:
        storage = table.metadata.storage
        path = min(path for path, _ in base_files(table))
        storage.put(path.replace("-0-0_", "-7-9_"), storage.read(path))

    assert compact_pausing(table, 5, java_dies_after_one_file)
    assert not [path for path, _ in base_files(table) if "-7-9_" in path]


def test_nothing_is_made_for_a_plan_that_is_withdrawn() -> None:
    table = with_writes(WRITES - 1)
    last = table.write(new_file("a", name(99), ["99"], [0.5]))

    def it_is_rolled_back() -> None:
        table.roll_back(last, table.times.next())

    ports = replace(table.ports, executor=PausingExecutor({5: it_is_rolled_back, 6: die}))
    with pytest.raises((Conflict, Died)):
        table.compact(ports, deltacommits_min=1)
    assert base_files(table) == set()


def test_the_ledger_of_a_compaction_goes_with_it_whoever_ends_it() -> None:
    table = with_writes(WRITES - 1)
    last = table.write(new_file("a", name(99), ["99"], [0.5]))
    with pytest.raises(Died):
        compact_pausing(table, 1, die)
    table.roll_back(last, table.times.next())
    table.take_back(last)
    assert table.compact(deltacommits_min=1)
    assert not table.metadata.storage.list(LEDGER_FOLDER).folders


def test_nothing_is_lost_at_whatever_call_a_compaction_stands_still() -> None:
    """Others take the lock that it has, commit, and compact in their turn."""
    for at in count(1, PAUSES_APART):
        table = with_writes()
        names = [name(number) for number in range(WRITES, WRITES + 3)]

        def others_go_on(table: TableInMemory = table, names: list[str] = names) -> None:
            table.storage.delete(".hoodie/lock")
            for one in names:
                table.write(new_file("a", one, [one], [0.5]))
            table.clock.advance(DEAD_AFTER_MS)
            table.compact(deltacommits_min=1)

        hook = Hook(at, others_go_on)
        with suppress(Conflict, Unavailable):
            TableInMemory(hook.storage(table.storage), table.clock).compact(deltacommits_min=1)
        if not hook.has_happened:
            return
        assert listed(table) == {name(number) for number in range(WRITES + 3)}, at
        table.write(new_file("a", name(50), ["50"], [0.5]))
        table.clock.advance(DEAD_AFTER_MS)
        table.compact(deltacommits_min=1)
        assert listed(table) == {name(number) for number in (*range(WRITES + 3), 50)}, at


def test_a_plan_that_got_its_time_after_others_had_committed_is_withdrawn() -> None:
    table = with_writes(WRITES - 1)

    def others_write() -> None:
        table.storage.delete(".hoodie/lock")
        table.write(new_file("a", name(99), ["99"], [0.5]))

    paused = Hook(1, others_write, of=("list", "record_index"))
    storage = paused.storage(table.storage)
    assert TableInMemory(storage, table.clock).compact(deltacommits_min=1) is None
    assert listed(table) == {*(name(number) for number in range(WRITES - 1)), name(99)}
    assert compactions(table) == []


def test_an_attempt_that_was_superseded_does_not_take_the_files_away() -> None:
    table = with_writes()

    def it_is_superseded_by_one_that_dies() -> None:
        table.clock.advance(DEAD_AFTER_MS)
        with pytest.raises(Died):
            compact_pausing(table, 3, die, plans=False)

    with pytest.raises(Conflict) as lost:
        compact_pausing(table, 2, it_is_superseded_by_one_that_dies)
    assert lost.value.code == "superseded"
    assert base_files(table)
    table.clock.advance(DEAD_AFTER_MS)
    assert table.compact()
    assert_all_files_are_there(table)


def with_writes(count: int = WRITES) -> TableInMemory:
    table = TableInMemory().create()
    for number in range(count):
        table.write(new_file("a", name(number), [str(number)], [0.5]))
    return table


def compact_pausing(
    table: TableInMemory, at_task: int, meanwhile: Callable[[], None], *, plans: bool = True
) -> Compacted | None:
    """Compact the metadata table, and stand still before a task while others do something."""
    ports = replace(table.ports, executor=PausingExecutor({at_task: meanwhile}))
    return table.compact(ports, deltacommits_min=1 if plans else None)


def compactions(table: TableInMemory) -> list[str]:
    active = load_metadata_table(table.storage, table.config).timeline.active
    return [one.requested for one in active.completed((Action.COMMIT,))]


def base_files(table: TableInMemory) -> set[tuple[str, str]]:
    """The base files of compactions: their paths and instants."""
    return {
        (f"{partition}/{file.name}", file.instant)
        for partition in table.metadata.partitions()
        for file in table.metadata.files(partition)
        if isinstance(file, BaseFile) and not file.instant.startswith("0000")
    }


def assert_all_files_are_there(table: TableInMemory) -> None:
    """What the completed compaction says it has made lies there."""
    active = table.metadata.timeline.active
    (instant,) = active.completed((Action.COMMIT,))
    metadata = commit.decode(active.read(instant), "compaction")
    for stats in metadata.partition_to_write_stats.values():
        assert all(table.metadata.storage.stat(one.path or "") is not None for one in stats)


@pytest.mark.parametrize("at_task", [0, 1])
def test_what_a_later_attempt_has_told_stays(at_task: int) -> None:
    table = TableInMemory().create()
    instant = table.begin()
    mine = TableChange(instant=instant, new_files=many_files())
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
    change = TableChange(instant=instant, new_files=many_files())

    def somebody_rolls_it_back() -> None:
        table.roll_back(instant, table.times.next())

    with pytest.raises(Conflict) as lost:
        tell_pausing(table, change, 1, somebody_rolls_it_back)
    assert lost.value.code == "metadata_completed_elsewhere"
    state = load_metadata_table(table.storage, table.config)
    assert state.deltacommit(instant) is None


def test_what_others_have_ended_is_taken_back_though_the_lock_is_lost_as_well() -> None:
    table = TableInMemory().create()
    instant = table.begin()
    # Right after the look before; both timelines were listed when they were loaded.
    hook = Hook(3, lambda: table.roll_back(instant, table.times.next()), of=TIMELINE_LISTED)
    storage = FaultyStorage(hook.storage(table.storage), concurrency=LastFirst())
    state = load_metadata_table(storage, table.config)
    begin(state, instant, Action.DELTA_COMMIT)
    with pytest.raises(Conflict) as lost:
        complete_now(state, instant, commit_content([], "upsert"), table.times, die)
    assert lost.value.code == "metadata_completed_elsewhere"
    assert hook.has_happened
    assert load_metadata_table(table.storage, table.config).deltacommit(instant) is None


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
