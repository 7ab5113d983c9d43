"""Growth: ten times as much of one thing makes ten times the work at most, and often none more.

Work is counted in calls, so that the tests say the same on any machine.
"""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.run.executor import available_cores
from lakewarden.engine.services.compaction.plan import Rules, select_partitions
from lakewarden.engine.services.compaction.strategies import UnBounded
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.sampling import turns
from tests.work_counting import Work, counted

TENFOLD_MAX = 11
HARDLY_MORE = 1.1
_fresh = count()


def table_of(*, columns: int = 2, partitions: int = 2, rows: int = 20, **how: object) -> Table:
    storage = fresh_memory_storage()
    given: Mapping[str, object] = {"type": "mor", "key": ["id"], "partition": ["p"]} | how
    content = rows_of(columns, partitions, rows)
    table = Table.create(storage.location.uri, content.schema, storage=storage, **given)  # type: ignore[arg-type]
    table.bulk_insert(content)
    return table


def rows_of(columns: int, partitions: int, rows: int) -> pa.Table:
    ids = [f"key number {number}" for number in range(rows)]
    places = [f"p{number % partitions}" for number in range(rows)]
    values = {f"c{number}": pa.array([next(_fresh)] * rows) for number in range(columns)}
    return pa.table({"id": ids, "p": places, **values})


def changed(table: Table, rows: int = 2) -> Callable[[], object]:
    some = table.read_arrow().sort_by("id").slice(0, rows)
    own = [name for name in some.column_names if not name.startswith("_hoodie")]
    return lambda: table.upsert(some.select(own))


def read(table: Table) -> Callable[[], object]:
    return table.read_arrow


def grown(few: Table, many: Table, act: Callable[[Table], Callable[[], object]]) -> float:
    """How many times the calls something takes on the larger table, when done once before."""
    works: list[Work] = []
    for table in (few, many):
        prepared = act(table)
        prepared()
        works.append(counted(prepared))
    return works[1].total / works[0].total


@pytest.mark.parametrize("act", [read, changed])
def test_ten_times_the_columns(act: Callable[[Table], Callable[[], object]]) -> None:
    assert grown(table_of(columns=10), table_of(columns=100), act) <= TENFOLD_MAX


def test_ten_times_the_columns_make_a_read_look_at_a_schema_no_more_often() -> None:
    # Each look makes the whole schema anew.
    few, many = (counted(read(table_of(columns=size))) for size in (10, 100))
    assert few.of("ParquetFile.schema_arrow") == many.of("ParquetFile.schema_arrow") > 0


def test_ten_times_the_partitions_and_a_write_into_one() -> None:
    few, many = (table_of(partitions=size, rows=200) for size in (10, 100))
    assert grown(few, many, changed) <= 4


def test_ten_times_the_keys() -> None:
    few, many = (table_of(rows=size) for size in (1_000, 10_000))
    assert grown(few, many, changed) <= HARDLY_MORE
    assert grown(few, many, read) <= HARDLY_MORE


def test_ten_times_the_partitions_to_plan() -> None:
    names = [_Met(f"p{number}") for number in range(2_000)]
    asked = PlanRequest(partitions=tuple(names[::2]))
    rules = Rules(strategy=UnBounded(), plan_request=asked, new_base_bytes=1)
    _Met.times = 0
    select_partitions(names, rules)
    assert _Met.times <= 5 * len(names)


def test_ten_times_the_instants_and_a_small_write(tmp_path: Path) -> None:
    # Each file is looked at, and each name taken to pieces, when it is met first. What grows are
    # the folders of the metadata table, until a clean.
    table = Table.create(str(tmp_path / "t"), rows_of(1, 1, 1).schema, key=["id"])
    looks, names = [], []
    for number in range(31):
        work = counted(lambda: table.upsert(rows_of(1, 1, 1)))
        if number in (3, 30):
            looks.append(work.of("entry_of"))
            names.append(work.of("_said"))
    assert names[1] <= names[0]
    assert looks[1] - looks[0] <= 4 * 27


@pytest.mark.parametrize(("kind", "bytes_", "names"), [("cow", 12, 12), ("mor", 12, 12)])
def test_a_small_write_waits_for_the_disk_a_few_times(
    tmp_path: Path, kind: str, bytes_: int, names: int
) -> None:
    how: Mapping[str, object] = {"type": kind, "key": ["id"]}
    table = Table.create(str(tmp_path / "t"), rows_of(1, 1, 1).schema, **how)  # type: ignore[arg-type]
    table.upsert(rows_of(1, 1, 1))
    work = counted(lambda: table.upsert(rows_of(1, 1, 1)))
    assert work.of("LocalStorage._sync") <= bytes_
    assert work.of("sync_folder") <= names


class _Met(str):
    """A text that counts how often texts are compared, looked up, or put into a set."""

    __slots__ = ()
    times = 0

    def __hash__(self) -> int:
        _Met.times += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        _Met.times += 1
        return super().__eq__(other)


@pytest.mark.parametrize("files", [100, 1_000])
def test_what_a_commit_says_of_its_files_is_decoded_once_in_a_process(files: int) -> None:
    stat = WriteStat(path="a/f.parquet", file_id="f", file_size_in_bytes=5 << 20, num_writes=7)
    metadata = CommitMetadata(
        partition_to_write_stats={f"p{next(_fresh)}": (stat,) for _ in range(files)},
        extra_metadata={"schema": "{}"},
    )
    payload = commit.encode(metadata)
    first = counted(lambda: commit.summary(payload, "c"))
    again = counted(lambda: commit.summary(bytes(bytearray(payload)), "c"))
    assert first.total > files
    assert again.total < 10
    told = commit.summary(payload, "c")
    assert (told.telling_bytes, told.telling_rows) == (files * (5 << 20), files * 7)


def test_a_write_after_many_files_decodes_none_of_what_they_say() -> None:
    few, many = (table_of(partitions=size, rows=500) for size in (5, 50))
    works = []
    for table in (few, many):
        # What writes look at are the commits before them; these have one file each.
        act = changed(table, 1)
        act()
        works.append(counted(act).of_ours)
    decoded = [work["container.read_container"] for work in works]
    assert decoded[0] == decoded[1]


def test_a_record_index_spares_a_second_look_at_the_file_groups_of_an_upsert() -> None:
    indexed = {"hoodie.metadata.global.record.level.index.enable": True}
    table = table_of(partitions=1, rows=1_000, partition=["p"], ordering=["c0"], properties=indexed)
    act = changed(table)
    for _ in range(3):
        work = counted(act).of_ours
        assert work["log_files.key_changes"] == 0
        assert work["slice_reader.SliceReader.batches"] == 0


@pytest.mark.parametrize(
    ("kind", "partitions"), turns(("SIMPLE", "BLOOM", "GLOBAL_SIMPLE"), (1, 40))
)
def test_only_files_are_opened_whose_keys_leave_room_for_one_of_the_write(
    kind: str, partitions: int
) -> None:
    split = {
        "hoodie.copyonwrite.insert.auto.split": False,
        "hoodie.copyonwrite.insert.split.size": 10,
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.index.type": kind,
    }
    table = table_of(partitions=partitions, rows=10, type="cow", properties=split)
    for number in range(40):
        more = rows_of(2, 1, 10)
        ids = [f"{number:03d} {place}" for place in range(10)]
        columns = {"id": ids, "p": [f"p{number % partitions}"] * 10}
        own = {name: more.column(name) for name in ("c0", "c1")}
        table.insert(pa.table({**columns, **own}))
    one = table.read_arrow(filter=[("id", "==", "017 3")]).select(["id", "p", "c0", "c1"])
    work = counted(lambda: table.upsert(one))
    # One slice, which the workers share.
    assert 1 <= work.of_ours["slice_keys.SliceKeys.find"] <= available_cores()
    assert len(table.read_arrow()) == 410
    # A new key between those of a group, and one that logs brought.
    between = one.set_column(0, "id", [["017 35"]])
    assert table.upsert(between).rows_inserted == 1
    assert table.upsert(between).rows_updated == 1
