"""Whatever index finds the keys and whatever a write does, the record index says where rows are."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.sampling import sample

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
GLOBAL = "hoodie.metadata.global.record.level.index.enable"
PARTITIONED = "hoodie.metadata.record.level.index.enable"
KEPT = [
    *((kind, PARTITIONED) for kind in ("SIMPLE", "BLOOM", "BUCKET", "GLOBAL_SIMPLE", None)),
    *((kind, GLOBAL) for kind in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", None)),
]

# What else there is to keep true has tests of its own.
SMALL: dict[str, object] = {
    "hoodie.bucket.index.num.buckets": 2,
    "hoodie.metadata.index.column.stats.enable": False,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 1,
    "hoodie.index.bloom.num_entries": 10,
    "hoodie.bloom.index.filter.dynamic.max.entries": 10,
}

Rows = dict[str, tuple[str, int]]


class Story:
    """A table and the rows it has to have; keys are in one partition each."""

    def __init__(self, kind: str | None, switch: str, table_type: str) -> None:
        properties = SMALL | {switch: True} | ({} if kind is None else {"hoodie.index.type": kind})
        self.table = Table.create(
            "",
            SCHEMA,
            key=["id"],
            partition=["p"],
            ordering=["ts"],
            type=table_type,
            properties=properties,
            storage=fresh_memory_storage(),
        )
        self.rows: Rows = {}
        self.clock = 0

    def given(self, keys: str, partition: str) -> list[dict[str, Any]]:
        self.clock += 1
        homes = {key: self.rows[key][0] if key in self.rows else partition for key in keys}
        for key, home in homes.items():
            self.rows[key] = (home, self.clock)
        return [{"id": k, "p": p, "ts": self.clock, "v": self.clock} for k, p in homes.items()]

    def upsert(self, keys: str, partition: str) -> None:
        self.table.upsert(self.given(keys, partition))
        self.check(f"upsert {keys}")

    def drop(self, chosen: Callable[[str, str], bool]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if not chosen(key, row[0])}

    def check(self, step: str) -> None:
        read = self.table.read_arrow(["id", "p", "v"]).to_pylist()
        shown = sorted((row["id"], row["p"], row["v"]) for row in read)
        wanted = sorted((key, p, v) for key, (p, v) in self.rows.items())
        assert shown == wanted, step
        checked = self.table.validate(["record_index"])
        faults = [one for one in checked if str(one.finding.verdict) == "failed"]
        assert not faults, (step, faults)
        found = self.table.lookup(list("abcdefghijklmnop"), ["id", "v"]).to_pylist()
        assert sorted((row["id"], row["v"]) for row in found) == [
            (key, v) for key, _, v in wanted
        ], step


def check_all_writes(story: Story, *, is_mor: bool, has_buckets: bool) -> None:
    """All operations one after the other, each followed by a look at everything."""
    table = story.table

    story.check("create")
    story.upsert("abcd", "x")
    story.upsert("cdef", "y")
    table.insert(story.given("gh", "x"))
    story.check("insert")
    table.bulk_insert(story.given("ij", "y"))
    story.check("bulk_insert")
    story.drop(lambda key, _: key in "aj")
    table.delete([{"id": "a", "p": "x", "ts": 90}, {"id": "j", "p": "y", "ts": 90}])
    story.check("delete rows")
    story.drop(lambda key, _: key == "b")
    table.delete(["b"])
    story.check("delete keys")
    if is_mor:
        table.log_compaction.schedule_and_run()
        story.check("log compaction")
        table.compaction.schedule_and_run()
        story.check("compaction")
    check_changes_by_condition(story)
    check_replacements(story, has_buckets=has_buckets)


def check_changes_by_condition(story: Story) -> None:
    """Rows that are chosen by what they hold change, move and go."""
    table = story.table
    story.upsert("abkl", "x")
    story.rows["l"] = (story.rows["l"][0], 50)
    table.update_where([("id", "=", "l")], {"v": 50})
    story.check("update_where")
    for key in "kg":
        story.rows[key] = ("z", story.rows[key][1])
        table.update_where([("id", "=", key)], {"p": "z"})
        story.check(f"update_where moves {key}")
    story.drop(lambda key, _: key == "h")
    table.delete_where([("id", "=", "h")])
    story.check("delete_where")
    table.merge(story.given("abm", "y"))
    story.check("merge")
    table.rollback(table.upsert([{"id": "q", "p": "x", "ts": 1, "v": 1}]).instant)
    story.check("rollback")


def check_replacements(story: Story, *, has_buckets: bool) -> None:
    """File groups give way to others."""
    table = story.table

    if not has_buckets:
        table.clustering.schedule_and_run()
        story.check("clustering")
    story.upsert("bcn", "x")
    story.drop(lambda _, home: home == "y")
    table.overwrite_partitions(story.given("op", "y"))
    story.check("overwrite_partitions")
    story.upsert("eo", "y")
    story.drop(lambda _, home: home == "x")
    table.delete_partitions(["p=x"])
    story.check("delete_partitions")
    story.upsert("ab", "x")
    story.rows = {}
    table.overwrite(story.given("abk", "y"))
    story.check("overwrite")
    story.upsert("abcg", "z")
    story.rows = {}
    table.overwrite(SCHEMA.empty_table())
    story.check("overwrite with nothing")
    story.upsert("ab", "x")


@pytest.mark.parametrize(
    ("kind", "switch", "table_type"),
    sample([(*kept, table_type) for kept in KEPT for table_type in ("cow", "mor")], 5),
)
def test_the_record_index_is_true_after_each_write(
    kind: str | None, switch: str, table_type: str
) -> None:
    story = Story(kind, switch, table_type)
    check_all_writes(story, is_mor=table_type == "mor", has_buckets=kind == "BUCKET")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_new_keys_in_a_log_above_a_base_file_are_in_the_record_index(table_type: str) -> None:
    table = Table.create(
        "",
        SCHEMA,
        key=["id"],
        type=table_type,
        index="BUCKET",
        indexes=["record_index"],
        properties={"hoodie.bucket.index.num.buckets": 1},
        storage=fresh_memory_storage(),
    )
    for key in "aad":
        table.upsert([{"id": key, "p": "", "ts": 1, "v": 1}])
        if table_type == "mor":
            table.compaction.schedule_and_run()
    assert table.lookup(["d"]).num_rows == 1
    assert not [one for one in table.validate() if str(one.finding.verdict) == "failed"]
