"""Conditions as SQL text: Spark keeps the very rows that Arrow keeps."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.predicate import Condition, bind_filter
from lakewarden.engine.spark.scan.where import condition_sql
from lakewarden.engine.spark.workers.types import ddl

pytestmark = pytest.mark.xdist_group("spark")

TEXTS = ["", "a", "it's", "back\\slash", "\\'", "100%", "ü", "日本", "😀", "new\nline", "$x", "'"]
NUMBERS = [0, -1, 3, 100, (1 << 31) - 1, -(1 << 31)]
DECIMALS = [Decimal(text) for text in ("0", "1.00", "-1.01", "12345678.99")]
DATES = [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]
# The clocks of New York skip 2:30 on this day.
TIMES = [datetime(1, 1, 2), datetime(1883, 11, 18, 12), datetime(2024, 3, 10, 2, 30, 0, 123456)]
ZONED = [time.replace(tzinfo=UTC) for time in TIMES]

COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "text": (pa.string(), [*TEXTS]),
    "small": (pa.int32(), [*NUMBERS]),
    "long": (pa.int64(), [*NUMBERS, (1 << 63) - 1, -(1 << 63), (1 << 53) + 1]),
    "single": (pa.float32(), [0.0, -0.0, 0.1, 16777216.0, float("nan"), float("inf"), -1.5]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, 1e300, float("nan"), float("-inf"), 5e-324]),
    "amount": (pa.decimal128(10, 2), [*DECIMALS]),
    "huge": (pa.decimal128(38, 2), [*DECIMALS, Decimal(10) ** 35]),
    "flag": (pa.bool_(), [True, False]),
    "octets": (pa.binary(), [b"", b"\x00", b"\xff", b"a"]),
    "day": (pa.date32(), [*DATES]),
    "at": (pa.timestamp("us", "UTC"), [*ZONED]),
    "local": (pa.timestamp("us"), [*TIMES]),
    "a`b c": (pa.int32(), [1, 2]),
}
SCHEMA = pa.schema([("row", pa.int32()), *((name, type_) for name, (type_, _) in COLUMNS.items())])
ROWS_COUNT = 1 + max(len(values) for _, values in COLUMNS.values())
ASKED: list[object] = [
    *TEXTS,
    *NUMBERS,
    1 << 40,
    0.0,
    0.1,
    -1.5,
    1e300,
    *DECIMALS,
    Decimal("1.005"),
    True,
    b"",
    b"\xff",
    b"a",
    *DATES,
    *TIMES,
    *ZONED,
    datetime(2024, 3, 10, 2, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]
OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=")
LISTS: list[list[object]] = [[], ["a", "it's", "ü"], [0, 3], [date(2024, 2, 29), date(1, 1, 1)]]


def rows() -> pa.Table:
    """A table with each value of each column, and a null in all of them."""
    columns = [pa.array(range(ROWS_COUNT), pa.int32())]
    for type_, values in COLUMNS.values():
        columns.append(pa.array([*values, *[None] * (ROWS_COUNT - len(values))], type_))
    return pa.table(columns, schema=SCHEMA)


def conditions() -> list[Condition]:
    """All comparisons that Arrow understands."""
    plain = list(product(COLUMNS, OPERATORS, ASKED))
    listed = list(product(COLUMNS, ("in", "not in"), LISTS))
    return [condition for condition in (*plain, *listed) if is_understood(condition)]


def is_understood(condition: Condition) -> bool:
    try:
        return bind_filter([condition], SCHEMA) is not None
    except InvalidRequest:
        return False


def kept_by_arrow(condition: Condition) -> list[int]:
    predicate = bind_filter([condition], SCHEMA)
    assert predicate is not None
    numbers: list[int] = predicate.apply(rows()).column("row").to_pylist()
    return numbers


def kept_by_spark(spark: SparkSession, folder: Path, texts: list[str]) -> list[list[int]]:
    """The rows each condition keeps, found by one pass over the table."""
    pq.write_table(rows(), folder / "rows.parquet")
    frame = spark.read.schema(ddl(SCHEMA)).parquet(f"file://{folder}/rows.parquet")
    answers = [f"coalesce({text}, false) AS c{number}" for number, text in enumerate(texts)]
    found = frame.selectExpr("row", *answers).toArrow().sort_by("row")
    return [
        found.filter(found.column(f"c{number}")).column("row").to_pylist()
        for number in range(len(texts))
    ]


def assert_spark_agrees(spark: SparkSession, folder: Path, asked: list[Condition]) -> None:
    spelled = [(one, text) for one in asked if (text := condition_sql(one, SCHEMA)) is not None]
    found = kept_by_spark(spark, folder, [text for _, text in spelled])
    different = [
        (text, kept_by_arrow(one), kept)
        for (one, text), kept in zip(spelled, found, strict=True)
        if kept_by_arrow(one) != kept
    ]
    assert different == []


def test_spark_keeps_the_rows_that_arrow_keeps(spark: SparkSession, tmp_path: Path) -> None:
    assert_spark_agrees(spark, tmp_path, conditions())


def test_texts_mean_the_same_when_escapes_are_turned_off(
    spark: SparkSession, tmp_path: Path
) -> None:
    key = "spark.sql.parser.escapedStringLiterals"
    before = spark.conf.get(key) or "false"
    spark.conf.set(key, "true")
    try:
        assert_spark_agrees(spark, tmp_path, [("text", "=", text) for text in TEXTS])
    finally:
        spark.conf.set(key, before)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_can_be_asked_in_sql(name: str) -> None:
    _, (value, *_) = COLUMNS[name]
    assert condition_sql((name, "<=", value), SCHEMA) is not None


@pytest.mark.parametrize(
    "condition",
    [
        ("double", "=", float("nan")),
        ("double", "<", float("inf")),
        ("double", "=", (1 << 53) + 1),
        ("single", "=", (1 << 24) + 1),
        ("double", "in", [0.0]),
        ("amount", "=", Decimal("NaN")),
        ("huge", "=", Decimal("1.00001")),
        ("text", "in", ["a", None]),
        ("text", "in", "abc"),
        ("text", "=", None),
        ("small", "=", True),
        ("at", "=", datetime(2024, 1, 1)),
        ("local", "=", datetime(2024, 1, 1, tzinfo=UTC)),
        ("day", "=", datetime(2024, 1, 1)),
    ],
    ids=str,
)
def test_what_the_two_engines_may_see_differently_is_left_to_arrow(condition: Condition) -> None:
    assert condition_sql(condition, SCHEMA) is None
