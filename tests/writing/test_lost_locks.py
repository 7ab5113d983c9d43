"""A writer that stands still beyond its lock: whatever call it pauses at, no acknowledged row goes.

The pause is as long as another writer's whole commit, which has broken the lock.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import count

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction import commit
from tests.crash.dying_operations import ports
from tests.engine.transaction.hooked import Hook

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
PROPERTIES = {
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
LOCK = ".hoodie/lock"
# `make simulate` pauses at each call.
EVERY = 1 if "LAKEWARDEN_SEEDS" in os.environ else 4
BEFORE = {"a": 0, "b": 0}


class Pause:
    """Two writers of one file group; one pauses at a call for a whole commit of the other."""

    def __init__(self, kind: str, index: str) -> None:
        self.clock = ManualClock()
        self.storage: MemoryStorage = fresh_memory_storage(clock=self.clock)
        Table.create(
            "",
            SCHEMA,
            key=["id"],
            type=kind,
            index=index,
            properties=PROPERTIES,
            storage=self.storage,
            ports=ports(self.clock, 1),
        ).upsert(rows(BEFORE))
        self.acknowledged: dict[str, int] = {}

    def table(self, seed: int, storage: Storage | None = None) -> Table:
        return Table.on(storage or self.storage, ports(self.clock, seed))

    def play(self, at: int, other: dict[str, int]) -> Hook:
        hook = Hook(at, lambda: self._overtake(other))
        self._upsert(self.table(2, hook.storage(self.storage)), {"a": 1})
        return hook

    def _overtake(self, values: dict[str, int]) -> None:
        self.storage.delete(LOCK)
        self._upsert(self.table(3), values)

    def _upsert(self, table: Table, values: dict[str, int]) -> None:
        try:
            table.upsert(rows(values))
        except Conflict:
            return
        self.acknowledged |= values

    def read(self, *, use_metadata: bool) -> dict[str, int]:
        found = self.table(9).read_arrow(["id", "v"], use_metadata=use_metadata).to_pylist()
        seen = {row["id"]: row["v"] for row in found}
        assert len(seen) == len(found), f"Keys are there twice: {found}"
        return seen


def rows(values: dict[str, int]) -> list[dict[str, object]]:
    return [{"id": key, "v": value} for key, value in values.items()]


def lost(
    kind: str, index: str, other: dict[str, int], calls: Iterable[int]
) -> Iterator[tuple[int, object]]:
    """The calls at which a pause loses, doubles or invents a row, and what is read then."""
    for at in calls:
        pause = Pause(kind, index)
        hook = pause.play(at, other)
        if not hook.has_happened:
            return
        wanted = BEFORE | pause.acknowledged
        for use_metadata in (True, False):
            seen = pause.read(use_metadata=use_metadata)
            if seen != wanted:
                yield at, seen


@pytest.mark.parametrize(("kind", "index"), [("cow", "RECORD_INDEX"), ("mor", "SIMPLE")])
def test_every_acknowledged_row_is_there_whenever_a_writer_pauses(kind: str, index: str) -> None:
    assert not list(lost(kind, index, {"b": 2}, count(1, EVERY)))


def test_rows_are_lost_without_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    unfenced: Callable[..., bool] = lambda *_: True  # noqa: E731
    monkeypatch.setattr(commit, "fence_rivals", unfenced)
    # The look for conflicts is among the last calls.
    assert next(lost("cow", "SIMPLE", {"b": 2}, count(50)))
