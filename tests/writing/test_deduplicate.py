"""Deduplication: one row of each key is left, the newest, and every index says where it is."""

from typing import Any

import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.index.repeated_keys import BY_COMMIT, BY_FILE_GROUP, BY_ORDERING, BY_POSITION
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from tests.sampling import sample
from tests.writing.rivals import OnceFound
from tests.writing.shapes import Shape, all_shapes

APART = {"hoodie.parquet.small.file.limit": 0}
GLOBAL = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")
# Inserts look into buckets, so that no key gets there twice.
SHAPES = [one for one in all_shapes() if one.index != "BUCKET"]


def row(key: str = "k", **others: object) -> dict[str, Any]:
    return {"id": key, "p": "a", "ts": 1, "v": 1.0, "name": "n", **others}


def doubled(shape: Shape) -> MemoryStorage:
    """Rows that share keys: in two file groups, in one file, in two partitions."""
    storage = fresh_memory_storage()
    table = shape.create("", storage=storage)
    table.upsert([row(), row("once"), row("moved", ts=3)])
    table.insert([row(v=2.0), row("twice"), row("twice", ts=2, v=9.0)], APART)
    table.insert([row("moved", p="b", ts=2, v=3.0)], APART)
    return storage


def shown(storage: MemoryStorage) -> list[tuple[str, str, float]]:
    rows = Table.on(storage).read_arrow(["id", "p", "v"], use_metadata=False).to_pylist()
    return sorted((one["id"], one["p"], one["v"]) for one in rows)


def failures(storage: MemoryStorage) -> set[str]:
    found = Table.on(storage).validate()
    return {one.check for one in found if one.finding.verdict == "failed"}


@pytest.mark.parametrize("shape", sample(SHAPES, 5), ids=str)
def test_the_newest_row_of_each_key_is_left(shape: Shape) -> None:
    storage = doubled(shape)
    assert "keys" in failures(storage)
    table = Table.on(storage)
    done = table.repair_deduplicate()
    assert done.commit is not None
    moved = [("moved", "b", 3.0)]
    if shape.index not in GLOBAL and shape.is_partitioned:
        moved = [("moved", "a", 1.0), *moved]
    elif shape.is_event_time:
        moved = [("moved", "a", 1.0)]
    assert shown(storage) == [("k", "a", 2.0), *moved, ("once", "a", 1.0), ("twice", "a", 9.0)]
    assert failures(storage) == set()
    assert table.repair_deduplicate().commit is None
    # What is left is known to whoever writes on.
    table.upsert([row(ts=5, v=5.0), row("twice", ts=5, v=5.0)])
    assert [value for key, _, value in shown(storage) if key in ("k", "twice")] == [5.0, 5.0]
    assert failures(storage) == set()


def test_a_dry_run_tells_the_copies_and_changes_nothing() -> None:
    storage = doubled(Shape("mor"))
    before = Table.on(storage).timeline().instants
    found = Table.on(storage).repair_deduplicate(dry_run=True)
    assert [(one.key, one.stays, one.reason) for one in found.copies if one.stays] == [
        ("k", True, BY_COMMIT),
        ("twice", True, BY_ORDERING),
    ]
    assert [one.key for one in found.copies] == ["k", "k", "twice", "twice"]
    assert found.commit is None
    assert Table.on(storage).timeline().instants == before


def test_what_nothing_else_tells_apart_is_told_apart_by_its_place() -> None:
    storage = fresh_memory_storage()
    table = Shape("cow", index="GLOBAL_SIMPLE").create("", storage=storage)
    table.insert([row("far"), row("far", p="b"), row("near"), row("near")])
    found = table.repair_deduplicate(dry_run=True).copies
    reasons = {one.key: one.reason for one in found if one.stays}
    assert reasons == {"far": BY_FILE_GROUP, "near": BY_POSITION}
    assert found == table.repair_deduplicate(dry_run=True).copies


def test_other_partitions_than_those_named_are_left_alone() -> None:
    storage = fresh_memory_storage()
    table = Shape("cow").create("", storage=storage)
    table.insert([row(p=place) for place in "aabb"])
    table.repair_deduplicate(["p=b"])
    assert [place for _, place, _ in shown(storage)] == ["a", "a", "b"]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_who_changes_a_copy_meanwhile_makes_the_repair_give_way(type_: str) -> None:
    storage = doubled(Shape(type_))
    other = Table.on(storage)
    rival = OnceFound(lambda: other.upsert([row(ts=9, v=7.0)]))
    table = Table.on(storage, Ports(events=rival))
    with pytest.raises(Conflict):
        table.repair_deduplicate()
    table.repair_deduplicate()
    assert [value for key, _, value in shown(storage) if key == "k"] == [7.0]


def test_a_clustering_of_what_stays_makes_the_repair_give_way() -> None:
    storage = fresh_memory_storage()
    other = Shape("mor", index="RECORD_INDEX").create("", storage=storage)
    other.upsert([row()])
    other.insert([row(p="b", ts=2)])
    other.insert([row("more", p="b")], APART)
    rival = OnceFound(lambda: other.clustering.schedule_and_run(partitions=["p=b"]))
    with pytest.raises(Conflict):
        Table.on(storage, Ports(events=rival)).repair_deduplicate()
    assert Table.on(storage).repair_deduplicate().commit is not None
    assert shown(storage) == [("k", "b", 1.0), ("more", "b", 1.0)]
    assert failures(storage) == set()
