"""Streaming queries of Spark: each batch is in the table once, whatever way it comes."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import lakewarden
from lakewarden import Table
from lakewarden.engine.spark.workers.reports import packed_table
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.request import Commit
from lakewarden.source_writer import HandedOver, StreamWriter
from tests.small_session import printed

pytestmark = pytest.mark.xdist_group("spark")

CHECKOUT = Path(__file__).parents[3]
COLUMNS = "id STRING, ts BIGINT, op STRING"
NOW = {"availableNow": True}


class Lake:
    """A table, and files that a query reads one by one."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.path = str(folder / "orders")
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("op", pa.string())])
        self.table = Table.create(
            self.path, schema, key=["id"], ordering=["ts"], type="mor", indexes=["record_index"]
        )

    def add_file(self, number: int, *rows: tuple[str, int, str], to: str = "in") -> None:
        folder = self.folder / to
        folder.mkdir(exist_ok=True)
        lines = (json.dumps(dict(zip(("id", "ts", "op"), row, strict=True))) for row in rows)
        file = folder / f"{number}.json"
        file.write_text("\n".join(lines))
        # Spark takes files by their age, and two may be made within one of its ticks.
        os.utime(file, (number, number))

    def frame(self, of: str = "in") -> DataFrame:
        files = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return files.json(str(self.folder / of))

    def checkpoint(self, name: str = "checkpoint") -> str:
        return str(self.folder / name)

    def rows(self) -> Sequence[tuple[str, int]]:
        found = self.table.read_arrow(["id", "ts"])
        return sorted(zip(*(found.column(name).to_pylist() for name in ("id", "ts")), strict=True))

    def forget_last_answer(self, name: str = "checkpoint") -> None:
        """As if Spark had died before it wrote down that the last batch was done."""
        commits = self.folder / name / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
        for file in (commits / f"{last}", commits / f".{last}.crc"):
            file.unlink(missing_ok=True)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(lakewarden.enable(spark), tmp_path)
    # Spark looks for a format of a stream in the active session, which tests before may have left.
    spark.createDataFrame([(1,)], "one int")
    return lake


def test_changes_are_upserted_and_deleted_once_by_their_order(lake: Lake) -> None:
    lake.add_file(1, ("a", 1, "u"), ("b", 1, "u"), ("c", 5, "u"))
    lake.add_file(2, ("a", 2, "u"), ("b", 3, "d"), ("b", 2, "u"), ("c", 4, "d"), ("d", 1, "u"))
    said: list[tuple[int, int, int, bool]] = []

    def note(number: int, commit: Commit) -> None:
        said.append((number, commit.keys_asked, commit.keys_found, commit.is_repeated))

    for _ in range(2):
        lakewarden.stream_upsert(
            lake.frame(),
            lake.table,
            checkpoint=lake.checkpoint(),
            sequence_by="ts",
            apply_as_deletes="op = 'd'",
            trigger=NOW,
            on_batch=note,
        ).awaitTermination()
        assert lake.rows() == [("a", 2), ("c", 5), ("d", 1)]
        lake.forget_last_answer()
    assert len(lake.table.timeline().completed()) == 2
    (stream,) = lake.table.streams()
    assert (stream.batch, stream.stream) == (1, stream.query)
    assert said == [(0, 3, 0, False), (1, 4, 3, False), (1, 0, 0, True)]


def test_the_format_writes_each_batch_once(lake: Lake) -> None:
    lake.add_file(1, ("a", 2, "u"), ("b", 1, "u"))
    writer = lake.frame().writeStream.format("lakewarden").trigger(availableNow=True)
    writer.option("checkpointLocation", lake.checkpoint()).start(lake.path).awaitTermination()
    (stream,) = lake.table.streams()
    assert (stream.batch, stream.stream) == (0, stream.query)
    # As Spark does it when the answer to the first commit was lost.
    handed_over = HandedOver(packed_table(lake.table.read_arrow(["id", "ts", "op"])), stream.stream)
    again = StreamWriter(Location(lake.path), {}, lake.frame().schema, overwrites=False)
    again.commit([handed_over, None], 0)
    assert lake.rows() == [("a", 2), ("b", 1)]
    assert len(lake.table.timeline().completed()) == 1


def test_a_sink_finds_the_table_of_a_name(lake: Lake) -> None:
    lake.add_file(1, ("a", 1, "u"))
    lake.spark.sql(f"CREATE TABLE orders_of_name USING lakewarden LOCATION '{lake.path}'")
    try:
        writer = lake.frame().writeStream.option("checkpointLocation", lake.checkpoint())
        writer.trigger(availableNow=True).toTable("orders_of_name").awaitTermination()
    finally:
        lake.spark.sql("DROP TABLE orders_of_name")
    assert lake.rows() == [("a", 1)]


def test_a_copied_checkpoint_and_a_lost_one_are_refused(lake: Lake) -> None:
    lake.add_file(1, ("a", 1, "u"))
    start(lake, "first").awaitTermination()
    shutil.copytree(lake.checkpoint("first"), lake.checkpoint("copy"))
    lake.add_file(2, ("b", 1, "u"))
    for checkpoint, why in (("copy", "two copies go different ways"), ("new", "another query")):
        with pytest.raises(StreamingQueryException, match=why):
            start(lake, checkpoint).awaitTermination()
    assert lake.rows() == [("a", 1)]
    start(lake, "first").awaitTermination()
    assert lake.rows() == [("a", 1), ("b", 1)]


def start(lake: Lake, checkpoint: str) -> StreamingQuery:
    return lakewarden.stream_upsert(
        lake.frame(), lake.path, checkpoint=lake.checkpoint(checkpoint), name="orders", trigger=NOW
    )


def test_another_order_than_the_tables_is_refused(lake: Lake) -> None:
    lake.add_file(1, ("a", 1, "u"))
    with pytest.raises(lakewarden.InvalidRequest) as error:
        lakewarden.stream_upsert(lake.frame(), lake.table, checkpoint="c", sequence_by="op")
    assert error.value.code == "other_sequence"


@pytest.mark.by_turns(0)
def test_the_example_survives_its_own_kill(tmp_path: Path) -> None:
    said = printed(str(CHECKOUT / "examples" / "streaming.py"), [], tmp_path)
    assert "All 240 orders are in the table once" in said
