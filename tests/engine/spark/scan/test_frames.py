"""Tables as DataFrames: the same rows that Arrow gives, for every question."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewarden import InvalidRequest, Table
from lakewarden.engine.read.merge.predicate import Condition
from lakewarden.engine.spark.scan.frames import setting
from lakewarden.engine.table.config import TableType
from tests.canonical import canonical_rows, difference
from tests.golden_expectations import CLEANED_PAST, CLEANED_WINDOWS
from tests.golden_tables import GOLDEN_TABLES, SHARED_TABLES, GoldenDocument, GoldenTable
from tests.sampling import sample

pytestmark = pytest.mark.xdist_group("spark")

ONE_OF_EACH_KIND = (
    "cow_all_types",  # read by Spark alone
    "mor_all_types",  # merged in workers
    "cow_partition_url_encoded",  # both
    "cow_drop_partition_columns",  # values from paths
    "mor_schema_evolution_add_widen",
)
EMPTY = tuple(name for name in SHARED_TABLES if name.endswith("_empty"))
VARIANT = "variant of the question"


@dataclass(frozen=True)
class Question:
    """One read, asked of Spark and of Arrow."""

    name: str
    frame: Callable[[SparkSession], DataFrame]
    rows: Callable[[], pa.Table]


def snapshot(name: str, table: Table, **arguments: object) -> Question:
    return Question(
        name,
        lambda spark: table.read(spark, **arguments),  # type: ignore[arg-type]
        lambda: table.read_arrow(**arguments),  # type: ignore[arg-type]
    )


def changes(table: Table, since: str, until: str) -> Question:
    return Question(
        f"changes {since} {until}",
        lambda spark: table.changes(spark, since, until),
        lambda: table.changes_arrow(since, until),
    )


def questions(table: Table, expected: Mapping[str, Any], name: str) -> list[Question]:
    """All that can be asked of a golden table; the answers have the columns of the table."""
    first, *others = filters(table)
    asked = [
        snapshot("snapshot", table),
        snapshot("any of", table, filter=[[first], others]),
    ]
    if table.config.table_type is TableType.MERGE_ON_READ:
        asked.append(snapshot("base files", table, mode="read_optimized"))
    else:
        # Spark knows no Arrow expressions, so our reader has to read these files, too.
        asked.append(snapshot("expression", table, filter=pc.field(first[0]) == first[2]))
    if name not in CLEANED_PAST and "as_of" in expected:
        asked.append(snapshot("as of", table, as_of=expected["as_of"]["instant"]))
    for window in expected.get("incremental", ())[-1:]:
        begin, end = window["begin"], window["end"]
        if (name, end) not in CLEANED_WINDOWS and table.config.has_meta_fields:
            asked.append(changes(table, begin, end))
    return asked


def filters(table: Table) -> list[Condition]:
    """Conditions on the first plain columns that hold for about half of the rows."""
    rows = table.read_arrow()
    found: list[Condition] = []
    for field in rows.schema:
        values = rows.column(field.name).drop_null().to_pylist()
        if not field.name.startswith("_hoodie") and not pa.types.is_nested(field.type) and values:
            found.append((field.name, "!=" if found else ">=", sorted(values)[len(values) // 2]))
    return found[:4]


def answers(spark: SparkSession, asked: list[Question]) -> dict[str, pa.Table]:
    """What Spark answers to all questions, in one job."""
    frames = [
        question.frame(spark).selectExpr(f"'{question.name}' AS `{VARIANT}`", "*")
        for question in asked
    ]
    united = frames[0]
    for frame in frames[1:]:
        united = united.unionByName(frame, allowMissingColumns=True)
    found = united.toArrow()
    return {
        question.name: found.filter(pc.field(VARIANT) == question.name).select(frame.columns[1:])
        for question, frame in zip(asked, frames, strict=True)
    }


def assert_same_rows(frame: DataFrame, rows: pa.Table) -> None:
    assert frame.columns == rows.column_names
    assert difference(canonical_rows(rows), canonical_rows(frame.toArrow())) == ""


@pytest.mark.parametrize("name", sorted({*ONE_OF_EACH_KIND, *sample(GOLDEN_TABLES, 5)}))
def test_spark_gives_the_rows_that_arrow_gives(
    name: str, spark: SparkSession, golden: GoldenTable, golden_document: GoldenDocument
) -> None:
    table = Table(str(golden(name)))
    asked = questions(table, golden_document(name).get("expected", {}), name)
    found = answers(spark, asked)
    for question in asked:
        rows = question.rows()
        assert rows.column_names == found[question.name].column_names
        different = difference(canonical_rows(rows), canonical_rows(found[question.name]))
        assert different == "", question.name


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_columns_in_the_order_asked_for(
    name: str, spark: SparkSession, golden: GoldenTable
) -> None:
    table = Table(str(golden(name)))
    *_, before, last = table.schema.names
    (condition, *_) = filters(table)
    plan_request = {"columns": [last, before], "filter": [condition]}
    assert_same_rows(table.read(spark, **plan_request), table.read_arrow(**plan_request))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_no_column_at_all_still_counts_rows(
    name: str, spark: SparkSession, golden: GoldenTable
) -> None:
    table = Table(str(golden(name)))
    frame = table.read(spark, columns=[])
    assert frame.columns == []
    assert frame.count() == len(table.read_arrow())


@pytest.mark.parametrize("name", ["cow_all_types", "mor_all_types"])
def test_a_column_asked_for_twice(name: str, spark: SparkSession, golden: GoldenTable) -> None:
    frame = Table(str(golden(name))).read(spark, columns=["id", "i", "id"])
    assert frame.columns == ["id", "i", "id"]
    assert all(row[0] == row[2] for row in frame.collect())


def test_types_are_those_of_the_table(spark: SparkSession, golden: GoldenTable) -> None:
    merged = Table(str(golden("mor_all_types"))).read(spark).schema
    assert merged == Table(str(golden("cow_all_types"))).read(spark).schema
    assert {field.name: field.dataType.simpleString() for field in merged.fields[5:]} == {
        "id": "string",
        "b": "boolean",
        "i": "int",
        "l": "bigint",
        "f": "float",
        "d": "double",
        "dec5": "decimal(5,2)",
        "dec20": "decimal(20,6)",
        "s": "string",
        "bin": "binary",
        "day": "date",
        "at": "timestamp",
        "st": "struct<x:int,y:struct<z:string>>",
        "arr": "array<int>",
        "arrs": "array<struct<q:decimal(8,3),w:string>>",
        "m": "map<string,double>",
        "ts": "bigint",
        "p": "string",
    }


def test_times_without_zone_stay_without(spark: SparkSession, golden: GoldenTable) -> None:
    table = Table(str(golden("cow_timestamp_ntz")))
    types = {field.name: field.dataType.simpleString() for field in table.read(spark).schema}
    assert "timestamp_ntz" in types.values()


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_table_has_a_schema_and_no_rows(
    name: str, spark: SparkSession, golden: GoldenTable
) -> None:
    table = Table(str(golden(name)))
    frame = table.read(spark)
    assert frame.columns == table.schema.names
    assert frame.count() == 0


def test_a_table_that_nobody_has_written_to_has_no_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    properties.parent.mkdir()
    properties.write_text(
        "hoodie.table.name=new\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=9\n"
        "hoodie.timeline.layout.version=2\nhoodie.populate.meta.fields=false\n"
    )
    frame = Table(str(tmp_path)).read(spark)
    assert (frame.columns, frame.count()) == ([], 0)


def test_a_filter_that_leaves_no_slice(spark: SparkSession, golden: GoldenTable) -> None:
    table = Table(str(golden("mor_nested_partitions")))
    partition = table.config.partitions.fields[0].name
    frame = table.read(spark, filter=[(partition, "=", "nowhere")])
    assert (frame.columns, frame.count()) == (table.schema.names, 0)


@pytest.mark.parametrize("folder", ["[a]{b}*", "p=1", "50% of, it?", "a:b", "ü #1"])
def test_a_table_may_live_in_any_folder(
    folder: str, spark: SparkSession, golden: GoldenTable, tmp_path: Path
) -> None:
    path = tmp_path / folder / "table"
    shutil.copytree(golden("cow_partition_url_encoded"), path)
    table = Table(str(path))
    assert_same_rows(table.read(spark), table.read_arrow())
    assert_same_rows(Table(f"file://{path}").read(spark), table.read_arrow())


def test_old_dates_are_not_moved_to_another_calendar(
    spark: SparkSession, golden_copy: GoldenTable
) -> None:
    path = golden_copy("cow_all_types")
    for file in path.glob("[!.]*/*.parquet"):
        rows = pq.read_table(file)
        times = pa.array([datetime(1500, 1, 1, tzinfo=UTC)] * len(rows), rows["at"].type)
        days = times.cast(pa.date32())
        rows = rows.set_column(rows.schema.get_field_index("at"), "at", times)
        pq.write_table(rows.set_column(rows.schema.get_field_index("day"), "day", days), file)
    table = Table(str(path))
    plan_request = ["id", "day", "at"]
    with setting(spark, "spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"):
        assert_same_rows(
            table.read(spark, columns=plan_request), table.read_arrow(columns=plan_request)
        )


def test_a_missing_file_fails_whatever_the_session_ignores(
    spark: SparkSession, golden_copy: GoldenTable
) -> None:
    path = golden_copy("cow_all_types")
    table = Table(str(path))
    with setting(spark, "spark.sql.files.ignoreMissingFiles", "true"):
        frame = table.read(spark, columns=["id"])
        (slice_, *_) = table.file_slices()
        assert slice_.base_file is not None
        (path / slice_.path(slice_.base_file)).unlink()
        with pytest.raises(Exception, match=r"\.parquet"):
            frame.collect()


def test_an_error_in_a_worker_says_what_is_wrong(
    spark: SparkSession, golden_copy: GoldenTable
) -> None:
    path = golden_copy("mor_all_types")
    for file in path.glob("[!.]*/*.parquet"):
        file.write_bytes(b"no parquet")
    frame = Table(str(path)).read(spark)
    with pytest.raises(Exception, match="It is no readable Parquet file"):
        frame.collect()


def test_a_wrong_request_is_refused_before_spark_hears_of_it(
    spark: SparkSession, golden: GoldenTable
) -> None:
    with pytest.raises(InvalidRequest):
        Table(str(golden("cow_all_types"))).read(spark, columns=["nope"])
