"""Spark DataFrames as rows to write: fetched or left to workers, the table is the same."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewarden import Conflict, InvalidRequest, Table
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.spark.scan.frames import setting
from lakewarden.engine.spark.write.incoming import incoming_frame, refuse_speculation
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.distributed_rows import LOCAL_ROWS_MAX, DistributedRows
from lakewarden.engine.write.request import Incoming
from tests.canonical import canonical_rows, difference
from tests.golden_tables import GoldenTable
from tests.sampling import sample
from tests.writing.model import PARTITIONS, SCHEMA, Kind, Story, contents_of
from tests.writing.rivals import OnceFound
from tests.writing.shapes import Shape

pytestmark = pytest.mark.xdist_group("spark")

FAR = {"local_rows_max": 0}
DDL = "id string, p string, ts long, v double, name string"
KINDS: tuple[Kind, ...] = ("upsert", "insert", "bulk_insert", "delete", "upsert")
# A commit refuses a file without a marker.
MARKERS = tuple(
    {"hoodie.write.markers.type": name}
    for name in ("TIMELINE_SERVER_BASED", "BOTH", "BOTH", "TIMELINE_SERVER_BASED", "DIRECT")
)
# Every index, both table types and merge modes, with a metadata table and without one.
SHAPES = (
    Shape("mor"),
    Shape("cow", is_partitioned=False, is_event_time=False, has_metadata=False),
    Shape("cow", index="GLOBAL_SIMPLE"),
    Shape("mor", index="GLOBAL_BLOOM", has_metadata=False),
    Shape("mor", index="RECORD_INDEX"),
    Shape("cow", index="BUCKET", is_partitioned=False),
)


def frame_of(spark: SparkSession, rows: pa.Table, parts: int = 2) -> DataFrame:
    """The rows in some partitions, one row after the other if there is one partition."""
    return spark.createDataFrame(rows.to_pylist(), DDL).coalesce(parts)


def rows_of(count: int, *, ts: int = 1, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    columns = [
        [f"k{number:04d}" for number in numbers],
        [PARTITIONS[number % len(PARTITIONS)] for number in numbers],
        [ts] * count,
        [number / 2 for number in numbers],
        [None if number % 5 == 0 else f"name {number} at {ts}" for number in numbers],
    ]
    return pa.table(columns, schema=SCHEMA)


def metadata_of(table: Table) -> CommitMetadata:
    active = table.timeline()
    newest = active.completed()[-1]
    return commit_payload.decode(active.read(newest), active.path(newest))


def shape_of(metadata: CommitMetadata) -> object:
    """What commit metadata says, without the names of files and their sizes."""
    return {
        "operation": metadata.operation_type,
        "extra": metadata.extra_metadata,
        "groups": {
            partition: sorted(
                (
                    stat.num_writes,
                    stat.num_inserts,
                    stat.num_update_writes,
                    stat.num_deletes,
                    len(stat.log_files or ()),
                    stat.prev_commit is None,
                )
                for stat in stats
            )
            for partition, stats in metadata.partition_to_write_stats.items()
        },
    }


def files_of(folder: Path) -> set[str]:
    """The data files of a table, whether anybody knows of them or not."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".hoodie" not in str(path.relative_to(folder))
    }


@pytest.mark.parametrize("shape", sample(SHAPES, 3), ids=str)
def test_workers_leave_the_rows_of_the_model(
    shape: Shape, spark: SparkSession, tmp_path: Path
) -> None:
    table = shape.create(str(tmp_path / "table"))
    story = Story(11, shape.model(), kinds=KINDS)
    for kind, markers in zip(KINDS, MARKERS, strict=True):
        step = story.write(kind)
        story.model.apply(step)
        getattr(table, kind)(frame_of(spark, step.table()), options=markers, **FAR)
        expected = story.model.contents()
        assert contents_of(table.read_arrow()) == expected, kind
        assert contents_of(table.read_arrow(use_metadata=False)) == expected, kind


@pytest.mark.parametrize("operation", ["upsert", "overwrite"])
def test_far_rows_with_a_key_that_another_writer_has_brought_give_way(
    operation: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape("mor").create(str(tmp_path / "table"))
    rival = OnceFound(lambda: table.upsert(rows_of(1, ts=2)))
    writer = Table.on(open_storage(Location(str(tmp_path / "table"))), Ports(events=rival))
    with pytest.raises(Conflict, match=r"inserted|brought rows"):
        getattr(writer, operation)(frame_of(spark, rows_of(4)), **FAR)
    retries = {"hoodie.write.num.retries.on.conflict.failures": 1}
    writer = Table.on(open_storage(Location(str(tmp_path / "table"))), Ports(events=rival))
    getattr(writer, operation)(frame_of(spark, rows_of(4)), retries, **FAR)
    assert table.read_arrow(["id"]).sort_by("id")["id"].to_pylist() == [
        f"k{n:04d}" for n in range(4)
    ]


@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_fetched_rows_and_far_rows_are_written_alike(
    type_: str, spark: SparkSession, tmp_path: Path
) -> None:
    shape = Shape(type_, index="RECORD_INDEX")
    tables = {name: shape.create(str(tmp_path / name / "t")) for name in ("near", "far", "arrow")}
    options = {"near": {}, "far": FAR, "arrow": {}}
    batch = pa.concat_tables([rows_of(30, ts=2, first=40), rows_of(5, ts=3, first=45)])
    for operation, rows in (("upsert", rows_of(60)), ("upsert", batch), ("delete", rows_of(9))):
        found = []
        for name, table in tables.items():
            given = rows if name == "arrow" else frame_of(spark, rows, parts=1)
            getattr(table, operation)(given, **options[name])
            found.append((shape_of(metadata_of(table)), contents_of(table.read_arrow())))
        assert found[0] == found[1] == found[2], operation


@pytest.mark.parametrize("shape", [Shape(), Shape("mor", index="RECORD_INDEX")], ids=str)
def test_few_rows_for_many_files_are_written_by_workers_to_the_same_end(
    shape: Shape, spark: SparkSession, tmp_path: Path
) -> None:
    tables = [shape.create(str(tmp_path / name / "t")) for name in ("here", "there")]
    for operation, rows in (
        ("upsert", rows_of(60)),
        ("upsert", rows_of(30, ts=2, first=40)),
        ("delete", rows_of(9)),
    ):
        found = []
        for table, limit in zip(tables, (2 << 30, 0), strict=True):
            getattr(table, operation)(frame_of(spark, rows, parts=1), local_rewrite_bytes_max=limit)
            found.append((shape_of(metadata_of(table)), contents_of(table.read_arrow())))
        assert found[0] == found[1], operation
    # Only workers number their tries at a task.
    tokens = [path.name.split("_")[1] for path in (tmp_path / "there").rglob("*.parquet")]
    assert any(token.split("-")[1] != "0" for token in tokens) == (shape.type == "cow")


def test_far_rows_are_sorted_over_files_as_fetched_rows_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {}
    for name, options in (("near", {}), ("far", FAR)):
        table = Shape(is_partitioned=False).create(str(tmp_path / name))
        frame = frame_of(spark, rows_of(50))
        table.bulk_insert(frame, ["v"], auto_split=False, split_size=20, **options)
        found[name] = sorted(
            tuple(pq.read_table(path)["v"].to_pylist())
            for path in (tmp_path / name).glob("*.parquet")
        )
    assert found["far"] == found["near"]
    assert [len(part) for part in found["far"]] == [17, 17, 16]


def test_far_rows_overwrite_a_table_and_partitions_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape().create(str(tmp_path / "table"))
    table.upsert(rows_of(30))
    one = rows_of(30, ts=5).filter(pc.field("p") == "b")
    table.overwrite_partitions(frame_of(spark, one), **FAR)
    expected = [*rows_of(30).filter(pc.field("p") != "b").to_pylist(), *one.to_pylist()]
    assert contents_of(table.read_arrow()) == sorted(expected, key=lambda row: row["id"])
    table.overwrite(frame_of(spark, rows_of(4, ts=9)), **FAR)
    assert contents_of(table.read_arrow()) == rows_of(4, ts=9).to_pylist()


def test_a_bulk_insert_sends_no_row_from_worker_to_worker(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape(is_partitioned=False).create(str(tmp_path / "table"))
    frame = spark.range(0, 40, 1, 4).selectExpr(
        "string(id) AS id", "'a' AS p", "id AS ts", "0.5D AS v", "'n' AS name"
    )
    commit = table.bulk_insert(frame, local_rows_max=0)
    assert commit.files == 4
    assert commit.rows_inserted == 40


def test_what_is_wrong_with_far_rows_is_raised_as_with_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape().create(str(tmp_path / "table"))
    frame = frame_of(spark, rows_of(3)).selectExpr(
        "nullif(id, 'k0001') AS id", "p", "ts", "v", "name"
    )
    errors = []
    for options in ({}, FAR):
        with pytest.raises(InvalidRequest) as raised:
            table.upsert(frame, **options)
        errors.append((type(raised.value), raised.value.code, raised.value.why))
    assert errors[0] == errors[1]
    assert not table.timeline().instants


def test_rows_that_change_while_they_are_written_end_the_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape().create(str(tmp_path / "table"))
    frame = frame_of(spark, rows_of(20)).selectExpr("uuid() AS id", "p", "ts", "v", "name")
    # uuid() has a seed, which only a frame that is made anew changes; this one counts evaluations.
    changing = frame.mapInArrow(_Counting(str(tmp_path / "count")), frame.schema)
    with pytest.raises(InvalidRequest, match="Cache or checkpoint"):
        table.upsert(changing, **FAR)
    assert not table.timeline().completed()
    assert files_of(tmp_path / "table") == set()


class _Counting:
    """Gives other keys each time it is evaluated."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with open(self._path, "a+b") as file:
            file.write(b".")
            count = file.tell()
        for batch in batches:
            keys = pa.array([f"{count}-{number}" for number in range(len(batch))])
            yield pa.RecordBatch.from_arrays([keys, *batch.columns[1:]], names=batch.schema.names)


def test_speculative_execution_is_refused_unless_it_is_wanted() -> None:
    frame = _Speculative()
    with pytest.raises(InvalidRequest, match=r"spark\.speculation=false") as raised:
        refuse_speculation(cast(DataFrame, frame), Settings())
    assert raised.value.code == "speculative_execution"
    override = {"hoodie.block.writes.on.speculative.execution": False}
    refuse_speculation(cast(DataFrame, frame), Settings.of(arguments=override))


class _Speculative:
    """A frame of a session that was started with speculation, which no session can begin later."""

    def __init__(self) -> None:
        self.sparkSession = self
        self.conf = {"spark.speculation": "true"}


def test_a_frame_of_one_row_too_many_is_left_to_workers(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape().create(str(tmp_path / "table"))
    settings = Settings.of(arguments={LOCAL_ROWS_MAX.key: 10})
    few, many = (frame_of(spark, rows_of(count)) for count in (10, 11))
    location, config = Location(str(tmp_path / "table")), table.config
    assert len(cast(Incoming, incoming_frame(few, location, settings, config)).rows) == 10
    assert isinstance(incoming_frame(many, location, settings, config), DistributedRows)


def test_a_merge_takes_a_frame(spark: SparkSession, tmp_path: Path) -> None:
    table = Shape().create(str(tmp_path / "table"))
    table.upsert(rows_of(6))
    table.merge(frame_of(spark, rows_of(3, ts=2, first=5)), on_match="delete")
    assert sorted(table.read_arrow(["id"])["id"].to_pylist()) == [
        *(f"k{number:04d}" for number in range(5)),
        "k0006",
        "k0007",
    ]


def test_a_task_that_dies_with_a_file_written_leaves_no_trace(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Shape(is_partitioned=False).create(str(tmp_path / "table"))
    text = "x" * 2000
    frame = spark.range(0, 3000, 1, 1).selectExpr(
        "string(id) AS id", "'a' AS p", "id AS ts", "0.5D AS v", f"'{text}' AS name"
    )
    dying = frame.mapInArrow(_DiesOnce(str(tmp_path)), frame.schema)
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "200"):
        commit = table.bulk_insert(dying, auto_split=False, split_size=200, **FAR)
    assert (tmp_path / "died").exists()
    assert commit.files == 15
    assert sorted(map(int, table.read_arrow(["id"])["id"].to_pylist())) == list(range(3000))
    paths = {stat.path for stat in metadata_of(table).partition_to_write_stats[""]}
    assert {name for name in files_of(tmp_path / "table") if name.endswith("parquet")} == paths


class _DiesOnce:
    """Passes rows on; the first worker to do so ends when a data file has come into being."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 5 and not (self._folder / "died").exists():
                while not any((self._folder / "table").glob("*.parquet")):
                    pass
                (self._folder / "died").touch()
                os._exit(1)


@pytest.mark.parametrize("options", [{}, FAR], ids=["near", "far"])
def test_values_of_all_types_arrive_as_they_were(
    options: dict[str, int], spark: SparkSession, golden: GoldenTable, tmp_path: Path
) -> None:
    source = Table(str(golden("cow_all_types")))
    names = [name for name in source.schema.names if not name.startswith("_hoodie")]
    config = source.config
    table = Table.create(
        str(tmp_path / "table"),
        pa.schema([source.schema.field(name) for name in names]),
        key=config.key_fields,
        partition=[field.name for field in config.partitions.fields],
    )
    table.upsert(source.read(spark, names), **options)
    rows = (canonical_rows(one.read_arrow(names)) for one in (source, table))
    assert difference(*rows) == ""
