"""Every kind of index after every kind of write and service: what each says is a recomputation."""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import SeededIds
from lakewarden.engine.metadata.reading.definitions import definitions_path
from lakewarden.engine.metadata.writing.definitions_file import (
    define_indexes,
    expression_index_definition,
)
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.table.properties_file import update_properties
from tests.all_kinds import BLOOM, BY_DAY, BY_LOW, BY_N, BY_NAME, differences, give
from tests.crash.dying_operations import CrashedTable
from tests.histories.guards import GUARDS
from tests.sampling import turns

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
    ]
)
DAY = 86_400
Row: TypeAlias = tuple[str, str, int, int | None, str | None]
Action: TypeAlias = Callable[[Table], object]


def rows(*some: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in some], SCHEMA)


FIRST = rows(
    ("k0", "a", 1, 0, "N0"),
    ("k1", "b", 1, 1, "N$1\\"),
    ("k2", "a", 2 * DAY, 2, None),
    ("k3", "b", 3, 3, "N3"),
    ("k4", "c", 4, 4, "\u00dcber"),
)
SECOND = rows(("k0", "a", 5 * DAY, 9, "second"), ("k5", "a", 2, 5, "N5"), ("k3", "b", 9, 3, "N3"))


ALL_KINDS = (BLOOM, BY_NAME, BY_N, BY_DAY, BY_LOW)


def small_table(
    type_: str, index: str = "RECORD_INDEX", kinds: tuple[str, ...] = ALL_KINDS
) -> Table:
    """A table with every kind of index, and two writes with all of them on it."""
    made = _made(type_, index, kinds).twin()
    return Table.on(made.storage, _ports(made.clock, 2))


def _ports(clock: ManualClock, seed: int) -> Ports:
    return Ports(clock=clock, ids=SeededIds(seed), executor=LocalExecutor(1))


@cache
def _made(type_: str, index: str, kinds: tuple[str, ...]) -> CrashedTable:
    clock = ManualClock()
    table = _begun(clock, type_, index)
    give(table, kinds)
    assert differences(table) == []
    table.upsert(SECOND)
    assert differences(table) == []
    return CrashedTable(clock, table._storage)


def _begun(clock: ManualClock, type_: str, index: str, **properties: str) -> Table:
    """A table with the first rows."""
    table = Table.create(
        "all-kinds",
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type=type_,
        index=index,
        storage=fresh_memory_storage(clock=clock),
        ports=_ports(clock, 1),
        properties={
            "lakewarden.index.expression.timezone": "UTC",
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.metadata.global.record.level.index.min.filegroup.count": "2",
            "hoodie.metadata.global.record.level.index.max.filegroup.count": "2",
            "hoodie.log.compaction.blocks.threshold": "2",
            "hoodie.parquet.small.file.limit": "0",
            **properties,
        },
    )
    table.upsert(FIRST)
    return table


def then(*actions: Action) -> Action:
    def act(table: Table) -> object:
        return [action(table) for action in actions]

    return act


def restored(table: Table) -> object:
    saved = table.savepoint()
    table.upsert(rows(("k0", "b", 9 * DAY, 1, "undone"), ("k9", "c", 1, 1, "undone")))
    table.delete(["k1"])
    return table.restore(saved.instant)


def rolled_back(table: Table) -> object:
    return table.rollback(table.upsert(rows(("k0", "b", 9 * DAY, 1, "undone"))).instant)


def partly(table: Table) -> object:
    """Some columns of rows that match; on a table with logs the others are not in the log."""
    return table.update_where([("id", "in", ["k0", "k4"])], {"name": "partly"})


BOTH: dict[str, Action] = {
    "upsert": lambda table: table.upsert(
        rows(("k0", "a", 6 * DAY, 7, "new"), ("k8", "d", 1, 1, "x"))
    ),
    "upsert of a late row": lambda table: table.upsert(rows(("k0", "a", 0, 77, "late"))),
    "upsert of null": lambda table: table.upsert(rows(("k0", "a", 6 * DAY, None, None))),
    "upsert of a value back": then(
        lambda table: table.upsert(rows(("k2", "a", 6 * DAY, 2, "value"))),
        lambda table: table.upsert(rows(("k2", "a", 7 * DAY, 2, None))),
    ),
    "move": lambda table: table.upsert(rows(("k1", "a", 9, 8, "moved"), ("k3", "a", 9, 3, "N3"))),
    "insert": lambda table: table.insert(rows(("k20", "b", 9, 8, "i"), ("k21", "d", 9, 8, "i"))),
    "bulk insert": lambda table: table.bulk_insert(rows(("k20", "b", 9, 8, "i"))),
    "delete": lambda table: table.delete(["k0", "k4", "unknown"]),
    "delete and again": then(
        lambda table: table.delete(["k0"]),
        lambda table: table.upsert(rows(("k0", "c", 1, 1, "again"))),
    ),
    "partial update": partly,
    "delete where": lambda table: table.delete_where([("n", ">", 2)]),
    "overwrite": lambda table: table.overwrite(
        rows(("k0", "c", 1, 1, "ow"), ("k30", "a", 1, 1, "w"))
    ),
    "overwrite of partitions": lambda table: table.overwrite_partitions(
        rows(("k0", "a", 1, 1, "ow"), ("k30", "a", 1, 1, "ow"))
    ),
    "delete of partitions": lambda table: table.delete_partitions(["p=a"]),
    "clustering": lambda table: table.clustering.schedule_and_run(),
    "clean": then(
        lambda table: table.upsert(rows(("k0", "a", 6 * DAY, 7, "new"))),
        lambda table: table.clustering.schedule_and_run(),
        lambda table: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", fileversions_retained=1),
    ),
    "clean of a partition": then(
        lambda table: table.delete_partitions(["p=a"]),
        lambda table: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", fileversions_retained=1),
    ),
    "rollback": rolled_back,
    "restore": restored,
    "metadata compaction": then(
        lambda table: table.maintain_metadata(),
        lambda table: table.upsert(rows(("k0", "a", 6 * DAY, 7, "new"))),
    ),
}
LOGGED: dict[str, Action] = {
    "compaction": lambda table: table.compaction.schedule_and_run(),
    "log compaction": then(
        lambda table: table.upsert(rows(("k0", "a", 6 * DAY, 7, "new"))),
        lambda table: table.log_compaction.schedule_and_run(),
    ),
    "delete, then compaction": then(
        lambda table: table.delete(["k0", "k1"]),
        lambda table: table.compaction.schedule_and_run(),
    ),
}
MATRIX = [(type_, name) for name, type_ in turns(tuple(BOTH), ("cow", "mor"))]
MATRIX += [("mor", name) for name in LOGGED]


@pytest.mark.parametrize(("type_", "name"), MATRIX)
def test_an_action_leaves_every_kind_of_index_true(type_: str, name: str) -> None:
    table = small_table(type_)
    listed = table.config.metadata_partitions
    (BOTH | LOGGED)[name](table)
    assert differences(table) == []
    assert table.config.metadata_partitions == listed
    table.upsert(rows(("k0", "a", 8 * DAY, 1, "last"), ("k50", "c", 1, 1, "last")))
    assert differences(table) == []


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_values_that_files_keep_as_dictionaries_are_followed(type_: str) -> None:
    table = small_table(type_)
    alike: list[Row] = [(f"r{number}", "a", 1, number, "alike") for number in range(100)]
    table.insert(rows(*alike))
    table.upsert(rows(*(("r1", "a", 2, 1, "other"), ("r2", "a", 2, 2, "alike"))))
    table.delete(["r3"])
    assert differences(table) == []


def test_values_of_keys_that_may_repeat_are_refused() -> None:
    table = small_table("cow", index="GLOBAL_SIMPLE", kinds=(BY_NAME,))
    assert differences(table) == []
    with pytest.raises(InvalidRequest, match="secondary_index_by_name") as refused:
        small_table("cow", index="SIMPLE", kinds=(BY_NAME,))
    assert refused.value.code == "unsupported_index"


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("regexp_extract", {"pattern": "a(.)", "idx": "1"}),
        ("date_format", {"format": "EEE"}),
        ("lower", {"format": "yyyy"}),
        ("year", {}),
    ],
)
def test_an_expression_that_is_not_exact_is_refused_by_name(
    function: str, options: dict[str, str]
) -> None:
    table, partition = small_table("cow"), "expr_index_other"
    made = expression_index_definition(partition, "column_stats", function, "name", options)
    path = definitions_path(table.config)
    define_indexes(table._storage, path, [made])
    listed = ",".join((*table.config.metadata_partitions, partition))
    update_properties(table._storage, {"hoodie.table.metadata.partitions": listed})
    before = table.timeline().instants
    with pytest.raises(InvalidRequest, match="drop_index") as refused:
        table.upsert(SECOND)
    assert refused.value.code == "unsupported_index"
    assert table.timeline().instants == before


# Which action shows that a rule of upkeep is needed, by a part of the guard's name.
NEEDED = {
    "forgets the keys of what is replaced": ("cow", "overwrite of partitions"),
    "values of rewritten rows": ("cow", "upsert"),
    "what logs make of values": ("mor", "upsert"),
    "values of new rows": ("cow", "insert"),
    "new base files": ("cow", "insert"),
    "new logs": ("mor", "upsert"),
    "statistics of an expression in a partition": ("cow", "insert"),
}


@pytest.mark.parametrize("words", NEEDED)
def test_without_a_rule_of_upkeep_an_index_is_untrue(words: str) -> None:
    (guard,) = (one for one in GUARDS if words in one.name)
    type_, name = NEEDED[words]
    table = small_table(type_)
    with guard.removed():
        BOTH[name](table)
    assert differences(table)


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@pytest.mark.parametrize("name", ["upsert", "move", "delete", "overwrite of partitions"])
def test_filters_and_expressions_need_no_record_index(index: str, name: str) -> None:
    table = Table.create(
        "no-record-index",
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type="mor",
        index=index,
        storage=fresh_memory_storage(),
        properties={"lakewarden.index.expression.timezone": "UTC"},
    )
    table.upsert(FIRST)
    give(table, (BLOOM, BY_DAY, BY_LOW))
    BOTH[name](table)
    assert differences(table) == []


BUILT: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("record_index", "id", "record_index", {}),
    ("by_name", "name", "secondary_index", {}),
    ("bloom_filters", "", "bloom_filters", {}),
    ("by_day", "ts", "column_stats", {"expr": "from_unixtime", "format": "yyyy-MM-dd"}),
    ("by_low", "name", "bloom_filters", {"expr": "lower"}),
)


def bucketed(mode: str) -> Table:
    """A merge-on-read table with buckets on which every kind was built."""
    made = _bucketed(mode).twin()
    return Table.on(made.storage, _ports(made.clock, 2))


@cache
def _bucketed(mode: str) -> CrashedTable:
    clock = ManualClock()
    of_buckets = {
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.concurrency.mode": mode,
    }
    table = _begun(clock, "mor", "BUCKET", **of_buckets)
    for name, column, type_, options in BUILT:
        table.create_index(name, [column] if column else [], type_, options)
    return CrashedTable(clock, table._storage)


OF_BUCKETS = (
    "upsert of null",
    "delete and again",
    "partial update",
    "overwrite of partitions",
    "delete of partitions",
    "compaction",
    "log compaction",
)
MODES = ("OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL")


@pytest.mark.parametrize(("name", "mode"), turns(OF_BUCKETS, MODES))
def test_every_kind_is_built_on_buckets_and_kept_true_in_every_mode(name: str, mode: str) -> None:
    table = bucketed(mode)
    (BOTH | LOGGED)[name](table)
    assert differences(table) == []


def test_a_key_in_two_partitions_of_a_bucket_table_with_a_record_index_is_refused() -> None:
    table = bucketed(MODES[0])
    with pytest.raises(InvalidRequest, match="two partitions"):
        BOTH["move"](table)
    assert differences(table) == []
