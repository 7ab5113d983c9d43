"""The format `lakewarden` of `spark.read` and `df.write`."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden import Table
from tests.canonical import canonical_rows, difference
from tests.golden_tables import GoldenTable

pytestmark = pytest.mark.xdist_group("spark")

DESCRIBED = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return lakewarden.enable(spark)


def frame_of(spark: SparkSession, *rows: tuple[str, str, int]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id string, day string, ts long")


def contents(rows: pa.Table) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in rows.select(["id", "day", "ts"]).to_pylist()}


@pytest.mark.parametrize("name", ["cow_all_types", "mor_all_types"])
def test_a_load_gives_the_rows_of_a_snapshot(
    name: str, session: SparkSession, golden: GoldenTable
) -> None:
    frame = session.read.format("lakewarden").load(str(golden(name)))
    rows = Table(str(golden(name))).read_arrow()
    assert difference(canonical_rows(rows), canonical_rows(frame.toArrow())) == ""


def test_a_load_knows_other_moments_and_modes(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    schema = pa.schema([("id", pa.string()), ("day", pa.string()), ("ts", pa.int64())])
    table = Table.create(path, schema, key=["id"], partition=["day"], ordering=["ts"], type="mor")
    instants = [
        table.upsert([{"id": "a", "day": "x", "ts": ts}, {"id": f"k{ts}", "day": "x", "ts": ts}])
        for ts in (1, 2)
    ]
    first = {("a", "x", 1), ("k1", "x", 1)}
    answers = [
        ({"as.of.instant": instants[0].completed}, first),
        ({"mode": "read_optimized"}, {("a", "x", 1), ("k1", "x", 1), ("k2", "x", 2)}),
        ({"since": instants[0].completed}, {("a", "x", 2), ("k2", "x", 2)}),
        (
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "0",
                "hoodie.datasource.read.end.instanttime": instants[0].completed,
            },
            first,
        ),
    ]
    for options, expected in answers:
        frame = session.read.format("lakewarden").options(**options).load(path)
        assert contents(frame.toArrow()) == expected, options
    asked = {"since": "0", "hoodie.datasource.query.incremental.format": "cdc"}
    captured = session.read.format("lakewarden").options(**asked).load(path).toArrow()
    assert captured.equals(table.changes_arrow("0", mode="cdc").cast(captured.schema))
    assert table.changes(session, "0", mode="cdc", columns=["op"]).count() == len(captured) == 4


def test_appending_creates_a_table_and_upserts_into_it(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "orders")
    first = frame_of(session, ("a", "x", 1), ("b", "y", 1))
    first.write.format("lakewarden").options(**DESCRIBED).mode("append").save(path)
    second = frame_of(session, ("b", "y", 2), ("c", "y", 2))
    second.write.format("lakewarden").mode("append").save(path)
    table = Table(path)
    assert contents(table.read_arrow()) == {("a", "x", 1), ("b", "y", 2), ("c", "y", 2)}
    assert table.properties["hoodie.table.name"] == "orders"
    assert table.properties["hoodie.table.type"] == "MERGE_ON_READ"
    assert table.config.key_fields == ("id",)


def test_overwriting_leaves_nothing_of_the_table_as_it_was(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "orders")
    for mode, row in (("append", ("a", "x", 1)), ("overwrite", ("b", "y", 1))):
        frame = frame_of(session, row)
        frame.write.format("lakewarden").options(**DESCRIBED).mode(mode).save(path)
    assert contents(Table(path).read_arrow()) == {("b", "y", 1)}


@pytest.mark.by_turns(1)
def test_options_of_the_first_write_say_what_the_table_is(
    session: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "orders")
    frame = frame_of(session, ("a", "x", 1), ("b", "y", 1))
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    frame.write.format("lakewarden").options(**DESCRIBED, **buckets).mode("append").save(path)
    for other in (
        {**DESCRIBED, "hoodie.datasource.write.recordkey.field": "ts"},
        {"hoodie.datasource.write.partitionpath.field": "ts"},
        {"hoodie.bucket.index.num.buckets": "3"},
        {"hoodie.index.type": "SIMPLE"},
    ):
        with pytest.raises(PySparkException, match=r"The table has"):
            frame.write.format("lakewarden").options(**other).mode("append").save(path)
    frame.write.format("lakewarden").options(**DESCRIBED, **buckets).mode("append").save(path)
    assert contents(Table(path).read_arrow()) == {("a", "x", 1), ("b", "y", 1)}


def test_another_operation_may_be_named(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    rows = frame_of(session, ("a", "x", 1), ("b", "y", 1))
    for operation, frame in (("insert", rows), ("delete", rows.where("id = 'a'"))):
        options = {**DESCRIBED, "hoodie.datasource.write.operation": operation}
        frame.write.format("lakewarden").options(**options).mode("append").save(path)
    assert contents(Table(path).read_arrow()) == {("b", "y", 1)}


def test_a_table_without_a_key_is_not_created(session: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(session, ("a", "x", 1))
    with pytest.raises(PySparkException, match=r"hoodie\.datasource\.write\.recordkey\.field"):
        frame.write.format("lakewarden").mode("append").save(str(tmp_path / "orders"))
    assert not (tmp_path / "orders").exists()


def test_options_that_mean_nothing_are_refused(session: SparkSession, golden: GoldenTable) -> None:
    with pytest.raises(PySparkException, match="no option 'as_off'"):
        session.read.format("lakewarden").option("as_off", "1").load(str(golden("cow_all_types")))
