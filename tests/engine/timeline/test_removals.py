"""What two looks at a timeline say of files that may have gone in between."""

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.removals import removals_between
from tests.crash.victims import ports
from tests.histories.tables import TableKind


def table_of(kind: TableKind) -> Table:
    clock = ManualClock()
    return kind.create(fresh_memory_storage(clock=clock), ports(clock, 1))


def row(v: int) -> dict[str, object]:
    return {"id": "k", "p": "a", "ts": v, "v": v, "name": None, "n": v}


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_a_table_of_which_every_write_is_savepointed_is_written_to(type_: str) -> None:
    table = table_of(TableKind(type_, has_metadata=False))
    table.upsert([row(1)])
    table.savepoint()
    table.upsert([row(2)])
    assert table.read_arrow(["v"])["v"].to_pylist() == [2]


def test_what_was_known_and_is_archived_may_have_lost_files() -> None:
    table = table_of(TableKind(has_metadata=False))
    table.upsert([row(1)])
    before = table.timeline()
    for v in range(2, 9):
        table.upsert([row(v)])
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table.archive(options={**options, "hoodie.clean.commits.retained": "1"})
    assert removals_between(before, table.timeline()) == before.completed()
