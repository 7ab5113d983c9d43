"""Two writers with other columns: the later one may not take those of the earlier one away."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")
SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
RIVALS = {"id": "b", "v": 2}


@dataclass
class RivalFirst:
    """An executor that lets a rival write once, before the files of a write are made."""

    rival: Callable[[], object] | None
    workers: int = 1

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        rival, self.rival = self.rival, None
        if rival is not None:
            rival()
        return map(function, tasks)


def raced(storage: MemoryStorage, options: dict[str, object]) -> Table:
    """A writer that adds the column `mine`, while another one adds `theirs` in its own file."""
    table = Table.create(
        "", SCHEMA, key=["id"], properties={"hoodie.metadata.enable": "false"}, storage=storage
    )

    def rival() -> None:
        table.insert([{"id": "b", "v": 2, "theirs": 20}], small_file_limit=0, evolve=True)

    writer = Table.on(storage, Ports(executor=RivalFirst(rival)))
    writer.insert([{"id": "a", "v": 1, "mine": 10}], options, small_file_limit=0, evolve=True)
    return table


def test_the_later_writer_loses_and_the_column_of_the_first_stays() -> None:
    storage = fresh_memory_storage()
    with pytest.raises(Conflict) as caught:
        raced(storage, {})
    assert caught.value.code == "write_conflict"
    assert "older schema" in str(caught.value)
    found = Table.on(storage).read_arrow(["id", "v", "theirs"]).to_pylist()
    assert found == [{"id": "b", "v": 2, "theirs": 20}]


def test_a_writer_that_tries_again_keeps_both_columns() -> None:
    table = raced(
        fresh_memory_storage(),
        {
            "hoodie.write.num.retries.on.conflict.failures": 1,
            "hoodie.write.set.null.for.missing.columns": True,
        },
    )
    found = table.read_arrow(["id", "v", "theirs", "mine"]).sort_by("id").to_pylist()
    assert found == [
        {"id": "a", "v": 1, "theirs": None, "mine": 10},
        {"id": "b", "v": 2, "theirs": 20, "mine": None},
    ]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_column_is_not_hidden_by_a_write_that_began_later_and_came_first(retries: int) -> None:
    storage = fresh_memory_storage()
    table = Table.create("", SCHEMA, key=["id"], storage=storage)
    writer = Table.on(storage, Ports(executor=RivalFirst(lambda: table.insert([RIVALS]))))
    more = [{"id": "a", "v": 1, "mine": 10}]
    if not retries:
        with pytest.raises(Conflict, match="began later with the columns from before"):
            writer.insert(more, small_file_limit=0, evolve=True)
        assert table.read_arrow(["id", "v"]).to_pylist() == [RIVALS]
    writer.insert(more, small_file_limit=0, evolve=True, retries_on_conflict_failures=retries)
    found = table.read_arrow(["id", "v", "mine"]).sort_by("id").to_pylist()
    assert found == [*more, {**RIVALS, "mine": None}]
