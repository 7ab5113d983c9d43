"""Whatever a task leaves behind when it dies is announced by a marker, and harms no reader."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA, parse_file_name
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableType
from lakewarden.engine.testing.fault_plan import FaultPlan, StorageCall, crash_plans
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from lakewarden.engine.transaction.state.markers import read_markers
from tests.engine.write.small_table import Row, SmallTable, keyed, write_spec_of

A1: Row = {"k": "a", "v": "a1", "ts": 1}
B1: Row = {"k": "b", "v": "b1", "ts": 1}
A2: Row = {"k": "a", "v": "a2", "ts": 2}


def create(table: SmallTable) -> None:
    table.write(inserts=keyed([B1]))


def rewrite(table: SmallTable) -> None:
    table.write(updates=keyed([A2]), inserts=keyed([B1]))


def append(table: SmallTable) -> None:
    table.write(updates=keyed([A2]))


TASKS: dict[str, tuple[Callable[[SmallTable], None], TableType]] = {
    "create": (create, TableType.COPY_ON_WRITE),
    "rewrite": (rewrite, TableType.COPY_ON_WRITE),
    "append": (append, TableType.MERGE_ON_READ),
}


def prepared(name: str) -> SmallTable:
    """A table on which the task is the next one."""
    table = SmallTable(write_spec_of(table_type=TASKS[name][1]), fresh_memory_storage())
    if name != "create":
        table.write(inserts=keyed([A1]))
    return table


def crashed(name: str, plan: FaultPlan) -> tuple[SmallTable, tuple[StorageCall, ...]]:
    """The table after the task was started; all calls it made."""
    table = prepared(name)
    whole, faulty = table.storage, FaultyStorage(table.storage, plan)
    table.storage = faulty
    with suppress(Crashed):
        TASKS[name][0](table)
    table.storage = whole
    return table, faulty.calls


def crashes() -> Iterator[tuple[str, FaultPlan]]:
    for name in TASKS:
        _, calls = crashed(name, FaultPlan())
        yield from ((name, plan) for plan in crash_plans(calls))


def data_files(storage: Storage) -> set[str]:
    return {
        entry.path
        for entry in storage.walk("p")
        if parse_file_name(entry.name, entry.size_bytes) is not None
    }


@pytest.mark.parametrize(("name", "plan"), list(crashes()), ids=str)
def test_a_crash_leaves_only_what_its_markers_tell(name: str, plan: FaultPlan) -> None:
    before = prepared(name)
    old = data_files(before.storage)
    table, _ = crashed(name, plan)
    instant = "20260101000000001" if name == "create" else "20260101000000002"
    marked = {file.path for file in read_markers(table.storage, instant) or ()}
    assert data_files(table.storage) - marked == old - marked
    if data_files(table.storage):
        assert table.storage.stat(f"p/{PARTITION_METADATA}") is not None


@pytest.mark.parametrize("name", ["rewrite", "append"])
def test_the_slice_before_a_crash_is_read_as_it_was(name: str) -> None:
    _, calls = crashed(name, FaultPlan())
    for plan in crash_plans(calls):
        table, _ = crashed(name, plan)
        if table.slice == prepared(name).slice:
            assert table.values() == {"a": "a1"}
