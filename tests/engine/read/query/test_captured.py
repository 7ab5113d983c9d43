"""Captured changes: what each commit did to each row, by logs or by comparing slices."""

import json
from collections.abc import Mapping

import pyarrow as pa
import pytest

from lakewarden import InvalidRequest, Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.change_logging import CDC_LOGGING_MODE

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
TYPES = pytest.mark.parametrize("kind", ["cow", "mor"])
MODES = pytest.mark.parametrize("mode", [None, "OP_KEY_ONLY", "data_before", "DATA_BEFORE_AFTER"])
ONE_COMMIT: dict[str, object] = {"hoodie.clean.commits.retained": 1}
# What became of a key: the operation, its value before and after.
Change = tuple[str, str, int | None, int | None]


def rows(*given: tuple[str, str, int], ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": id_, "p": p, "v": v, "ts": ts} for id_, p, v in given], SCHEMA
    )


class Tale:
    """A table in memory, a second between its calls."""

    def __init__(self, kind: str, properties: Mapping[str, object] | None = None) -> None:
        self.clock = ManualClock()
        self.table = Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"],
            ordering=["ts"],
            type=kind,
            properties=properties,
            storage=fresh_memory_storage(clock=self.clock),
            ports=Ports(clock=self.clock),
        )

    def upsert(self, *given: tuple[str, str, int], ts: int = 1) -> str:
        self.clock.advance(1000)
        return self.table.upsert(rows(*given, ts=ts)).instant

    def changes(self, since: str = "0", until: str | None = None) -> list[list[Change]]:
        """The changes of each commit in turn."""
        found: dict[str, list[Change]] = {}
        for row in self.table.changes_arrow(since, until, mode="cdc").to_pylist():
            old, new = (json.loads(row[name] or "null") for name in ("before", "after"))
            told = (old or {}).get("v"), (new or {}).get("v")
            found.setdefault(row["ts_ms"], []).append((row["op"], (new or old)["id"], *told))
        return [sorted(found[instant]) for instant in sorted(found)]


def logging(mode: str | None) -> dict[str, object]:
    """The properties of a table that logs changes; without a mode it does not."""
    properties = {"hoodie.table.cdc.enabled": mode is not None}
    return properties if mode is None else {**properties, CDC_LOGGING_MODE: mode}


@TYPES
@MODES
def test_each_write_tells_what_became_of_each_row(kind: str, mode: str | None) -> None:
    tale = Tale(kind, logging(mode))
    first = tale.upsert(("a", "x", 1), ("b", "x", 2), ("c", "y", 3))
    tale.upsert(("a", "x", 10), ("d", "x", 4), ts=2)
    tale.upsert(("a", "x", 5), ts=1)
    tale.clock.advance(1000)
    tale.table.delete([{"id": "b", "p": "x"}])
    tale.clock.advance(1000)
    tale.table.overwrite_partitions(rows(("c", "y", 7)))
    every = [
        [("i", "a", None, 1), ("i", "b", None, 2), ("i", "c", None, 3)],
        [("i", "d", None, 4), ("u", "a", 1, 10)],
        [("d", "b", 2, None)],
        [("d", "c", 3, None), ("i", "c", None, 7)],
    ]
    assert tale.changes() == every
    done = {one.requested: one.completed for one in tale.table.timeline().completed()}
    assert tale.changes(since=str(done[first])) == every[1:]
    assert tale.changes(until=str(done[first])) == every[:1]


@TYPES
def test_services_change_no_row(kind: str) -> None:
    tale = Tale(kind)
    tale.upsert(("a", "x", 1), ("b", "x", 2))
    tale.upsert(("a", "x", 3), ts=2)
    before = tale.changes()
    if kind == "mor":
        tale.table.compaction.schedule_and_run(
            options={"hoodie.compact.inline.max.delta.commits": 1}
        )
    tale.table.clustering.schedule_and_run()
    assert tale.changes() == before
    tale.upsert(("a", "x", 4), ts=3)
    assert tale.changes() == [*before, [("u", "a", 3, 4)]]


def test_a_key_that_moves_is_deleted_and_inserted() -> None:
    tale = Tale("cow", {"hoodie.index.type": "GLOBAL_SIMPLE"})
    tale.upsert(("a", "x", 1))
    tale.upsert(("a", "y", 2), ts=2)
    assert tale.changes()[1] == [("d", "a", 1, None), ("i", "a", None, 2)]


@MODES
def test_a_row_beside_one_of_its_key_is_an_insert(mode: str | None) -> None:
    tale = Tale("cow", logging(mode))
    tale.upsert(("a", "x", 1))
    tale.clock.advance(1000)
    tale.table.insert(rows(("a", "x", 2)))
    assert tale.changes()[1] == [("i", "a", None, 2)]


@TYPES
@MODES
def test_a_late_record_that_fills_a_row_has_updated_it(kind: str, mode: str | None) -> None:
    tale = Tale(kind, {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", **logging(mode)})
    new = pa.Table.from_pylist([{"id": "a", "p": "x", "v": None, "ts": 5}], SCHEMA)
    tale.clock.advance(1000)
    tale.table.upsert(new)
    tale.upsert(("a", "x", 3), ts=1)
    assert tale.changes() == [[("i", "a", None, None)], [("u", "a", None, 3)]]


def test_columns_and_filters_are_those_of_changes() -> None:
    tale = Tale("cow")
    tale.upsert(("a", "x", 1))
    tale.upsert(("a", "x", 2), ("b", "x", 1), ts=2)
    found = tale.table.changes_arrow("0", mode="cdc", columns=["op"], filter="op = 'u'")
    assert found.to_pylist() == [{"op": "u"}]
    with pytest.raises(InvalidRequest) as refused:
        tale.table.changes_arrow("0", mode="cdc", columns=["v"])
    assert refused.value.code == "unknown_column"
    with pytest.raises(InvalidRequest) as refused:
        tale.table.changes_arrow("0", mode="CDC!")
    assert refused.value.code == "bad_mode"


@TYPES
def test_a_window_that_has_lost_a_file_is_refused(kind: str) -> None:
    tale = Tale(kind)
    tale.upsert(("a", "x", 1))
    for v in range(2, 5):
        tale.upsert(("a", "x", v), ts=v)
        if kind == "mor":
            tale.table.compaction.schedule_and_run(
                options={"hoodie.compact.inline.max.delta.commits": 1}
            )
    tale.table.clean(options=ONE_COMMIT)
    with pytest.raises(InvalidRequest) as refused:
        tale.changes()
    assert refused.value.code == "history_cleaned"
    last = tale.upsert(("a", "x", 9), ts=9)
    before = [one.completed for one in tale.table.timeline().completed() if one.requested < last]
    assert tale.changes(since=str(before[-1])) == [[("u", "a", 4, 9)]]


def test_a_log_tells_more_than_the_slices_that_are_left() -> None:
    tale = Tale("cow", logging("DATA_BEFORE_AFTER"))
    for v in range(1, 5):
        last = tale.upsert(("a", "x", v), ts=v)
    tale.table.clean(options=ONE_COMMIT)
    done = [one.completed for one in tale.table.timeline().completed() if one.requested < last]
    # The slices before the last two writes are gone, and so are their logs.
    assert tale.changes(since=str(done[1])) == [[("u", "a", 2, 3)], [("u", "a", 3, 4)]]
    with pytest.raises(InvalidRequest) as refused:
        tale.changes(since=str(done[0]))
    assert refused.value.code == "history_cleaned"


@pytest.mark.parametrize("undo", ["rollback", "restore"])
def test_what_is_undone_takes_its_log_along(undo: str) -> None:
    tale = Tale("cow", logging("DATA_BEFORE_AFTER"))
    tale.upsert(("a", "x", 1))
    tale.upsert(("a", "x", 2), ts=2)
    saved = tale.table.savepoint()
    before, kept = tale.changes(), logs(tale)
    last = tale.upsert(("a", "x", 3), ts=3)
    assert len(logs(tale)) == len(kept) + 1
    if undo == "restore":
        tale.table.restore(saved.instant)
    else:
        tale.table.rollback(last)
    assert (tale.changes(), logs(tale)) == (before, kept)


def logs(tale: Tale) -> list[str]:
    """The logs of change data that are in the storage."""
    found = [entry.path for entry in tale.table.state().storage.walk("")]
    return sorted(path for path in found if path.endswith(".cdc"))
