"""A write does what it would have done after all that completed before it, or it gives way.

Rows that another writer brings in a file group of its own stand in the way of whatever has decided
that there are none.
"""

from collections.abc import Callable

import pytest

from lakewarden import Conflict, Table
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import MemoryStorage
from tests.sampling import sample, turns
from tests.writing.rivals import PREPARED, OnceFound
from tests.writing.shapes import Shape
from tests.writing.test_new_keys import (
    AGAIN,
    BY_EVENT,
    GLOBAL,
    OLD,
    Row,
    racing,
    row,
    shown,
    started,
)

Act = Callable[[Table, dict[str, int]], object]
Rows = list[tuple[str, str, float]]
SHAPES = [
    Shape("mor"),
    Shape("cow", index="RECORD_INDEX"),
    Shape("mor", index="BUCKET", has_metadata=False),
    Shape("cow", index="GLOBAL_BLOOM", is_event_time=False),
]
APART = {"hoodie.parquet.small.file.limit": 0}


def home(table: Table) -> str:
    """The partition of the first row."""
    return next(path for path in table.partitions() if path.endswith("a"))


# What decides by all rows of partition a, and what it leaves of k there and m in b.
DECIDING: dict[str, tuple[Act, Rows]] = {
    "overwrite": (lambda table, options: table.overwrite([row("o")], options), [("o", "a", 1.0)]),
    "overwrite_partitions": (
        lambda table, options: table.overwrite_partitions([row("o")], options),
        [("m", "b", 2.0), ("o", "a", 1.0)],
    ),
    "delete_partitions": (
        lambda table, options: table.delete_partitions([home(table)], options),
        [("m", "b", 2.0)],
    ),
    "truncate": (lambda table, options: table.truncate(options=options), []),
    "delete_where": (
        lambda table, options: table.delete_where([("p", "=", "a"), ("v", ">", 1)], options),
        [("m", "b", 2.0)],
    ),
    "update_where": (
        lambda table, options: table.update_where([("p", "=", "a"), ("v", ">", 1)], NINE, options),
        [("k", "a", 9.0), ("m", "b", 2.0)],
    ),
    "merge": (
        lambda table, options: table.merge([row()], NINE, "ignore", options),
        [("k", "a", 9.0), ("m", "b", 2.0)],
    ),
}
NINE = {"v": 9.0}
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
WITHIN = sorted(DECIDING.keys() - {"overwrite", "truncate"})


def brings(storage: MemoryStorage, *rows: Row) -> Callable[[], object]:
    """Another writer, whose rows come into file groups of their own."""
    other = Table.on(storage)
    return lambda: other.insert(list(rows), APART)


def prepared(storage: MemoryStorage, rival: Callable[[], object]) -> Table:
    """A writer beside which somebody else acts after it has read, and before it is published."""
    return Table.on(storage, Ports(events=OnceFound(rival, phase=PREPARED)))


@pytest.mark.parametrize(("name", "shape"), turns(tuple(DECIDING), SHAPES), ids=str)
def test_rows_that_came_meanwhile_are_not_passed_over(name: str, shape: Shape) -> None:
    act, left = DECIDING[name]
    storage = started(shape)
    both = row(v=2.0), row("m", p="b", v=2.0)
    with pytest.raises(Conflict) as caught:
        act(racing(storage, brings(storage, *both)), {})
    assert caught.value.code == "write_conflict"
    assert len(shown(storage)) == 2
    again = started(shape)
    act(racing(again, brings(again, *both)), AGAIN)
    assert shown(again) == left


@pytest.mark.parametrize("name", WITHIN)
def test_rows_of_other_partitions_are_no_conflict(name: str) -> None:
    storage = started(Shape("mor"))
    rival = brings(storage, row("m", p="b", v=2.0), row(p="c", v=2.0))
    DECIDING[name][0](racing(storage, rival), {})
    assert [key for key, *_ in shown(storage) if key != "o"] == ["k", "m"]


@pytest.mark.parametrize("name", ["delete_where", "update_where", "merge"])
def test_deletes_of_others_are_no_conflict_where_rows_were_searched(name: str) -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    other.insert([row("j")], APART)
    DECIDING[name][0](racing(storage, lambda: other.delete(["j"])), {})
    assert shown(storage) == []


def test_services_bring_no_rows() -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    other.upsert([{**OLD, "ts": 2}])

    def serve() -> None:
        other.compaction.schedule_and_run()
        other.clustering.schedule_and_run()

    racing(storage, serve).delete_where([("v", ">", 1)])


@pytest.mark.parametrize("shape", sample(BY_EVENT, 5), ids=str)
def test_a_merge_that_ignored_a_key_gives_way_to_who_brings_it(shape: Shape) -> None:
    storage = started(shape)
    place = "b" if shape.is_partitioned and shape.index in GLOBAL else "a"
    table = racing(storage, brings(storage, row("j", p="c"), row(p=place, v=2.0)))
    with pytest.raises(Conflict):
        table.merge([row()], NINE, "ignore")
    assert ("k", place, 2.0) in shown(storage)


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX", "BUCKET"])
def test_a_merge_that_ignored_a_key_is_no_rival_of_other_keys(index: str) -> None:
    storage = started(Shape("mor", index=index))
    table = racing(storage, brings(storage, row("j", v=2.0)))
    table.merge([row()], NINE, "ignore")
    assert shown(storage) == [("j", "a", 2.0)]


@pytest.mark.parametrize(
    ("source", "on_match"), [(row(ts=5), "ignore"), (row(ts=0), "update")], ids=["ignored", "older"]
)
def test_a_merge_brings_rows_that_it_left_alone_and_others_deleted(
    source: Row, on_match: str
) -> None:
    storage = started(Shape("mor"))
    other = Table.on(storage)
    other.insert([row(v=2.0)], APART)
    table = racing(storage, lambda: other.delete_where([("id", "=", "k")]))
    table.merge([source], on_match, options=AGAIN)
    assert shown(storage) == [("k", "a", 1.0)]


def test_a_merge_of_what_is_there_or_not_stands_beside_other_rows() -> None:
    storage = started(Shape("mor"))
    Table.on(storage).insert([row(v=2.0)], APART)
    table = racing(storage, brings(storage, row("j", v=2.0)))
    table.merge([row(ts=5), row("i", ts=5)])
    assert shown(storage) == [("i", "a", 1.0), ("j", "a", 2.0), ("k", "a", 1.0)]


def test_what_is_taken_back_meanwhile_is_a_conflict_for_who_found_nothing() -> None:
    storage = started(Shape("cow"))
    other = Table.on(storage)
    other.insert([row(v=2.0)], APART)
    hiding = other.update_where([("id", "=", "k")], {"v": 0.5})
    table = prepared(storage, lambda: other.rollback(hiding.instant))
    with pytest.raises(Conflict, match="was rolled back after this one had read it"):
        table.delete_where([("v", ">", 1)])
    assert shown(storage) == [("k", "a", 2.0)]


def test_what_came_and_was_archived_before_a_write_is_published_is_a_conflict() -> None:
    storage = started(Shape("cow"))
    other = Table.on(storage)

    def rival() -> None:
        other.upsert([{**OLD, "ts": 7, "v": 7.0}])
        # So many that the metadata table is compacted, which holds the archive back.
        for number in range(6):
            other.insert([row(f"k{number}", p=f"q{number}")], APART)
        assert other.archive(options=SHORT)

    table = prepared(storage, rival)
    table.update_where([("p", "=", "a")], {"name": "changed"}, AGAIN)
    newest = Table.on(storage).read_arrow(["v", "name"], filter=[("id", "=", "old")])
    assert newest.to_pylist() == [{"v": 7.0, "name": "changed"}]


def test_a_key_deleted_in_vain_that_comes_back_by_a_rollback_is_a_conflict() -> None:
    storage = started(Shape("cow"))
    other = Table.on(storage)
    other.insert([row(v=2.0)], APART)
    gone = other.delete(["k"])
    with pytest.raises(Conflict, match="was rolled back after this one had read it"):
        prepared(storage, lambda: other.rollback(gone.instant)).delete(["k"])
    assert shown(storage) == [("k", "a", 2.0)]
