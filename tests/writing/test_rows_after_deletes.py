"""A row that comes after a delete of its key begins anew: no value of the deleted row is in it."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("w", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
Row = dict[str, object]


def table_of(type_: str, mode: str, ordering: list[str], index: str = "SIMPLE") -> Table:
    properties = {"hoodie.table.name": "t", "hoodie.bucket.index.num.buckets": "1"}
    if mode:
        properties["hoodie.table.partial.update.mode"] = mode
    return Table.create(
        "",
        SCHEMA,
        key=["id"],
        ordering=ordering,
        type=type_,
        index=index,
        properties=properties,
        storage=fresh_memory_storage(),
    )


def row(ts: int, v: str | None, w: str | None = None, *, deleted: bool = False) -> Row:
    return {"id": "k", "ts": ts, "v": v, "w": w, "_hoodie_is_deleted": deleted}


def values(table: Table) -> list[tuple[object, object]]:
    return [(one["v"], one["w"]) for one in table.read_arrow(SCHEMA.names).to_pylist()]


def compact(table: Table) -> None:
    table.compaction.schedule_and_run()


def compact_logs(table: Table) -> None:
    table.log_compaction.schedule_and_run(options={"hoodie.log.compaction.blocks.threshold": "1"})


def both(table: Table) -> None:
    compact_logs(table)
    compact(table)


TABLES = pytest.mark.parametrize(
    ("type_", "settles"),
    [
        pytest.param("cow", lambda _: None, id="cow"),
        pytest.param("mor", compact, id="mor-compaction"),
        pytest.param("mor", compact_logs, id="mor-log-compaction"),
        pytest.param("mor", both, id="mor-both"),
    ],
)
MODES = pytest.mark.parametrize(
    ("mode", "lacking"),
    [("IGNORE_DEFAULTS", None), ("FILL_UNAVAILABLE", "__debezium_unavailable_value")],
)
ORDERINGS = pytest.mark.parametrize("ordering", [[], ["ts"]], ids=["commit", "event"])
INDEXES = pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])


@TABLES
@MODES
@ORDERINGS
@INDEXES
def test_no_value_of_a_deleted_row_comes_back(
    type_: str,
    settles: Callable[[Table], None],
    mode: str,
    lacking: str | None,
    ordering: list[str],
    index: str,
) -> None:
    table = table_of(type_, mode, ordering, index)
    table.upsert([row(1, "deleted", "deleted")])
    table.delete(["k"])
    assert values(table) == []
    table.upsert([row(9, lacking, "new")])
    assert values(table) == [(lacking, "new")]
    settles(table)
    assert values(table) == [(lacking, "new")]


@TABLES
@MODES
@ORDERINGS
@INDEXES
def test_a_delete_and_a_row_in_one_write_are_a_new_row(
    type_: str,
    settles: Callable[[Table], None],
    mode: str,
    lacking: str | None,
    ordering: list[str],
    index: str,
) -> None:
    table = table_of(type_, mode, ordering, index)
    table.upsert([row(1, "deleted", "deleted")])
    table.upsert([row(2, "gone", "gone"), row(3, None, deleted=True), row(4, lacking, "new")])
    assert values(table) == [(lacking, "new")]
    settles(table)
    assert values(table) == [(lacking, "new")]


@TABLES
def test_a_row_after_a_delete_by_key_may_be_older_than_the_deleted_one(
    type_: str, settles: Callable[[Table], None]
) -> None:
    table = table_of(type_, "", ["ts"])
    table.upsert([row(9, "deleted")])
    table.delete(["k"])
    table.upsert([row(1, "new")])
    assert values(table) == [("new", None)]
    settles(table)
    assert values(table) == [("new", None)]


@TABLES
@MODES
def test_a_late_delete_takes_nothing_away(
    type_: str, settles: Callable[[Table], None], mode: str, lacking: str | None
) -> None:
    table = table_of(type_, mode, ["ts"])
    table.upsert([row(5, "kept", "kept")])
    table.upsert([row(3, None, deleted=True)])
    table.upsert([row(9, lacking, "new")])
    assert values(table) == [("kept", "new")]
    settles(table)
    assert values(table) == [("kept", "new")]
