"""A filter on the record key is a lookup: the same rows as a scan, and no other file is opened."""

from collections.abc import Sequence
from random import Random
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden import Table
from lakewarden.engine.read.merge.predicate import Filter
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.testing.faults import FaultyStorage
from tests.engine.read.counted_reads import CountedReads

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("p", pa.string()),
        ("v", pa.int32()),
        ("ts", pa.int64()),
    ]
)


def made(
    storage: FaultyStorage,
    *,
    key: Sequence[str] = ("id",),
    kind: str = "mor",
    index: str = "RECORD_INDEX",
) -> Table:
    """A table of three partitions with ten rows in each, of which some are in logs."""
    table = Table.create("", SCHEMA, key, ["p"], ["ts"], kind, index=index, storage=storage)
    rows = [row(number, 1) for number in range(30)]
    table.bulk_insert(rows)
    table.upsert([row(number, 2) for number in range(0, 30, 5)])
    table.delete([one for one in table.read_arrow().to_pylist() if one["n"] == 7])
    return table


def row(number: int, version: int) -> dict[str, object]:
    names = {"id": f"key{number}", "n": number, "p": f"p{number % 3}"}
    return {**names, "v": number * version, "ts": version}


def base_files_opened(
    storage: FaultyStorage, table: Table, filter_: Filter
) -> tuple[pa.Table, int]:
    before = len(storage.calls)
    found = table.read_arrow(["id", "n", "p", "v"], filter_)
    calls = storage.calls[before:]
    paths = {call.path for call in calls if call.operation in ("open", "read")}
    return found, sum(path.endswith(".parquet") for path in paths)


FILTERS: list[Filter] = [
    [("id", "=", "key5")],
    [("id", "=", "key4")],
    [("id", "=", "key7")],
    [("id", "=", "no such key")],
    [("id", "in", ["key4", "key7", "key10"])],
    [("id", "=", "key5"), ("v", ">", 100)],
    [("_hoodie_record_key", "=", "key5")],
    [[("id", "=", "key5")], [("id", "=", "key8"), ("p", "=", "p2")]],
    pc.field("id") == "key5",
    (pc.field("id") == "key5") | (pc.field("v") == 8),
    ~(pc.field("id") == "key5"),
]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("filter_", FILTERS, ids=str)
def test_a_filter_on_the_key_gives_the_rows_of_a_scan(kind: str, filter_: Filter) -> None:
    table = made(FaultyStorage(fresh_memory_storage()), kind=kind)
    expected = table.read_arrow(filter=filter_, use_metadata=False).sort_by("id")
    assert table.read_arrow(filter=filter_).sort_by("id").equals(expected)


@pytest.mark.parametrize("index", ["RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_only_the_file_group_that_the_index_names_is_opened(index: str) -> None:
    storage = FaultyStorage(fresh_memory_storage())
    table = made(storage, index=index)
    found, opened = base_files_opened(storage, table, [("id", "=", "key4")])
    assert found.to_pylist() == [{"id": "key4", "n": 4, "p": "p1", "v": 4}]
    assert opened == 1
    found, opened = base_files_opened(storage, table, [("id", "in", ["key7", "nothing"])])
    assert (len(found), opened) == (0, 0)


def test_a_composite_key_is_looked_up_whole_or_not_at_all() -> None:
    storage = FaultyStorage(fresh_memory_storage())
    table = made(storage, key=("id", "n"))
    whole: Filter = [("id", "=", "key4"), ("n", "in", [4, 5])]
    assert base_files_opened(storage, table, whole)[1] == 1
    found, opened = base_files_opened(storage, table, [("id", "=", "key4")])
    assert (len(found), opened) == (1, 3)


def test_a_key_of_numbers_is_looked_up_by_its_text() -> None:
    storage = FaultyStorage(fresh_memory_storage())
    table = made(storage, key=("n",))
    found, opened = base_files_opened(storage, table, [("n", "=", 4)])
    assert (found["id"].to_pylist(), opened) == (["key4"], 1)
    # A fraction equals a number by Arrow, and no key is spelled so: the files decide.
    found, opened = base_files_opened(storage, table, pc.field("n") == 4.0)
    assert (found["id"].to_pylist(), opened) == (["key4"], 3)


def test_reads_of_the_past_and_of_base_files_alone_do_not_ask_the_index() -> None:
    storage = FaultyStorage(fresh_memory_storage())
    table = made(storage)
    first = table.timeline().completed()[0].requested
    then = table.read_arrow(filter=[("id", "=", "key7")], as_of=first)
    assert len(then) == 1
    base = table.read_arrow(filter=[("id", "=", "key7")], mode="read_optimized")
    assert len(base) == 1


def test_so_many_keys_that_nearly_every_file_group_has_some_are_not_asked_for() -> None:
    table = made(FaultyStorage(fresh_memory_storage()))
    keys = [f"key{number}" for number in range(65)]
    explained = table.explain(filter=[("id", "in", keys)])
    (use,) = (use for use in explained.indexes if use.index == "record_index")
    assert use.reason == "65 keys are in nearly all of 3 file groups"
    assert len(table.read_arrow(filter=[("id", "in", keys)])) == 29


def test_a_second_lookup_in_a_file_reads_the_row_group_of_the_key_alone() -> None:
    storage = fresh_memory_storage()
    table = Table.create("", SCHEMA, ["id"], storage=storage)
    chance = Random(1)
    texts = [chance.randbytes(50).hex() for _ in range(60_000)]
    table.bulk_insert([{**row(number, 1), "p": text} for number, text in enumerate(texts)])
    fetched: list[int] = []
    counted = Table.on(cast(Storage, CountedReads(storage, fetched)))
    for number in (5, 50_000):
        fetched.clear()
        found = counted.read_arrow(["id", "p"], [("id", "=", f"key{number}")])
        assert found["p"].to_pylist() == [texts[number]]
    (slice_,) = table.file_slices()
    # One of four row groups, and the footer with its bloom filter.
    assert sum(fetched) < 0.4 * slice_.size_bytes


def test_a_bloom_filter_rules_a_file_out_before_any_key_is_read() -> None:
    storage = fresh_memory_storage()
    table = Table.create("", SCHEMA, ["id"], storage=storage)
    chance = Random(2)
    texts = [chance.randbytes(50).hex() for _ in range(60_000)]
    table.bulk_insert([{**row(number, 1), "p": text} for number, text in enumerate(texts)])
    fetched: list[int] = []
    counted = Table.on(cast(Storage, CountedReads(storage, fetched)))
    found = counted.read_arrow(filter=[("id", "=", "key5 and more")], use_metadata=False)
    (slice_,) = table.file_slices()
    assert (len(found), sum(fetched) < 0.2 * slice_.size_bytes) == (0, True)


def test_an_explanation_names_the_index() -> None:
    table = made(FaultyStorage(fresh_memory_storage()))
    reasons = [one.reason for one in table.explain(filter=[("id", "=", "key4")]).skipped]
    assert reasons == ["the index record_index has none of the keys here"] * 2


def test_a_lookup_in_an_empty_table_finds_nothing() -> None:
    table = Table.create(
        "", SCHEMA, ["id"], ["p"], indexes=["record_index"], storage=fresh_memory_storage()
    )
    assert len(table.read_arrow(filter=[("id", "=", "key4")])) == 0
    assert len(table.lookup(["key4"])) == 0
