"""Expressions of indexes, against what Spark makes of the same values."""

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from lakewarden.engine.kernel.clock import UTC as UTC_ZONE
from lakewarden.engine.kernel.clock import named_zone
from lakewarden.engine.metadata.entries.expressions import IndexExpression, unknown_options

TEXTS = ["", "Abc", "  two  ", "\u00fcBER", "STR \u00df", "\u0130", "x\U0001d11ey", None, "\t "]
SECONDS = [0, 1, -1, 90_000, 1_711_846_800, 1_711_850_400, 253_402_300_799, None]
DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None]
MOMENTS = [
    datetime(2024, 3, 31, 0, 59, 59, 999_999, UTC),
    datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
    datetime(2024, 12, 31, 23, 30, tzinfo=UTC),
    None,
]
FORMAT = "yyyy-MM-dd'T'HH:mm:ss"
ZONES = ("UTC", "Europe/Oslo", "America/New_York")
CASES: list[tuple[str, dict[str, str], str]] = [
    *((name, {}, "string") for name in ("identity", "lower", "upper", "length")),
    *((name, {}, "string") for name in ("trim", "ltrim", "rtrim")),
    ("trim", {"trimString": "x t"}, "string"),
    *(
        ("substring", {"pos": place, "len": length}, "string")
        for place in ("0", "1", "3", "-2", "-9")
        for length in ("0", "2", "9")
    ),
    ("from_unixtime", {}, "bigint"),
    ("from_unixtime", {"format": "yyyy-MM-dd"}, "bigint"),
    ("from_unixtime", {"format": FORMAT}, "bigint"),
    *((name, {}, "date") for name in ("year", "month", "day", "hour", "to_date")),
    *((name, {}, "timestamp") for name in ("year", "month", "day", "hour", "to_date")),
    *((name, {"days": "3"}, "date") for name in ("date_add", "date_sub")),
    ("date_add", {"days": "-40"}, "timestamp"),
    ("date_format", {"format": "yyyy/MM"}, "date"),
    ("date_format", {"format": FORMAT}, "timestamp"),
    ("unix_timestamp", {}, "timestamp"),
]
VALUES: dict[str, list[Any]] = {
    "string": TEXTS,
    "bigint": SECONDS,
    "date": DAYS,
    "timestamp": MOMENTS,
}
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def sparks(function: str, options: dict[str, str]) -> Any:
    column = f.col("c")
    match function:
        case "identity":
            return column
        case "trim" | "ltrim" | "rtrim" if options:
            sides = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}
            return f.expr(f"trim({sides[function]} '{options['trimString']}' FROM c)")
        case "substring":
            return f.substring("c", int(options["pos"]), int(options["len"]))
        case "day":
            return f.dayofmonth("c")
        case "date_add" | "date_sub":
            return getattr(f, function)("c", int(options["days"]))
    return getattr(f, function)("c", *options.values())


def sparks_answers(spark: SparkSession, type_: str) -> list[list[Any]]:
    """What Spark makes of the values of a type, for each of its cases: one query answers them."""
    rows = list(enumerate(VALUES[type_]))
    frame = spark.createDataFrame(rows, f"at int, c {type_}").orderBy("at")
    asked = [sparks(function, options) for function, options, of in CASES if of == type_]
    return [list(answers) for answers in zip(*frame.select(*asked).collect(), strict=True)]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("zone", ZONES)
def test_an_expression_is_what_spark_makes_of_it(spark: SparkSession, zone: str) -> None:
    kept = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    rules = UTC_ZONE if zone == "UTC" else named_zone(zone)
    try:
        for type_, values in VALUES.items():
            cases = [(function, options) for function, options, of in CASES if of == type_]
            for case, answers in zip(cases, sparks_answers(spark, type_), strict=True):
                expression = IndexExpression(*case, rules)
                assert expression.refusal(TYPES[type_]) is None
                ours = expression.of(pa.array(values, TYPES[type_])).to_pylist()
                assert ours == answers, (case, type_)
    finally:
        spark.conf.set("spark.sql.session.timeZone", kept or "UTC")


@pytest.mark.parametrize(
    ("function", "options", "type_"),
    [
        ("split", {"pattern": ","}, pa.string()),
        ("from_unixtime", {"format": "MMM"}, pa.int64()),
        ("from_unixtime", {"format": "yyyy[MM]"}, pa.int64()),
        ("from_unixtime", {}, pa.float64()),
        ("to_date", {}, pa.string()),
        ("lower", {}, pa.int64()),
        ("no such function", {}, pa.int64()),
    ],
)
def test_what_is_not_exact_has_a_reason(
    function: str, options: dict[str, str], type_: pa.DataType
) -> None:
    assert IndexExpression(function, options).refusal(type_)


def test_options_that_a_function_does_not_take_are_named() -> None:
    assert unknown_options("lower", {"format": "yyyy"}) == ("format",)
    assert unknown_options("from_unixtime", {"format": "yyyy"}) == ()


# Moments of many years in random order, and every second hour of a summer.
_RANDOM = np.random.default_rng(18)
SCATTERED = np.concatenate(
    [
        _RANDOM.integers(-3_000_000_000, 4_000_000_000, 2_000),
        1_700_000_000 + 7_200 * _RANDOM.permutation(2_000),
        [-40_000_000_000, 300_000_000_000],
    ]
)
MANY_ZONES = ("Europe/Oslo", "Asia/Gaza", "Australia/Lord_Howe", "Africa/Casablanca", "UTC")


@pytest.mark.parametrize("zone", MANY_ZONES)
def test_wall_clocks_are_those_of_each_moment_alone(zone: str) -> None:
    rules = UTC_ZONE if zone == "UTC" else named_zone(zone)
    found = IndexExpression("from_unixtime", {}, rules).of(pa.array(SCATTERED)).to_pylist()
    for seconds, text in list(zip(SCATTERED.tolist(), found, strict=True))[:-2]:
        assert text == f"{rules.wall(seconds * 1000):%Y-%m-%d %H:%M:%S}"


def test_no_zone_changes_its_clock_twice_in_a_span_of_quarters() -> None:
    """Wall clocks are made by looking at spans of 64 hours, which have one change at most."""
    hours = 4
    for name in ("Asia/Gaza", "America/Noronha", "America/Boa_Vista", "Africa/Cairo"):
        zone = named_zone(name)
        moments = range(946_684_800_000, 1_420_070_400_000, hours * 3_600_000)
        offsets = [
            (zone.wall(moment) - UTC_ZONE.wall(moment)).total_seconds() for moment in moments
        ]
        changes = np.flatnonzero(np.diff(offsets))
        assert np.diff(changes).min() * hours > 64


@pytest.mark.parametrize("zone", MANY_ZONES)
@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("to_date", {}),
        ("year", {}),
        ("date_add", {"days": "9"}),
        ("date_sub", {"days": "9"}),
        ("from_unixtime", {}),
        ("from_unixtime", {"format": "yyyy-MM"}),
        ("from_unixtime", {"format": "dd.MM.yyyy"}),
        ("date_format", {"format": "yyyy/MM/dd HH"}),
        ("date_format", {"format": "HH"}),
        ("hour", {}),
    ],
)
def test_the_extremes_have_the_least_and_the_largest_result(
    function: str, options: dict[str, str], zone: str
) -> None:
    expression = IndexExpression(function, options, UTC_ZONE if zone == "UTC" else named_zone(zone))
    is_of_numbers = function == "from_unixtime"
    for count in (len(SCATTERED), len(SCATTERED) - 2, 2_000, 1):
        seconds = pa.array([None, *SCATTERED[:count].tolist()], pa.int64())
        values = seconds if is_of_numbers else seconds.cast(pa.timestamp("s", "UTC"))
        if not is_of_numbers and function != "date_format":
            values = values.cast(pa.timestamp("us", "UTC"))
        every, some = expression.of(values), expression.of(expression.extremes(values))
        assert pc.min_max(some) == pc.min_max(every)


def test_few_moments_are_evaluated_where_their_order_stays() -> None:
    moments = pa.array(SCATTERED[:2_000] * 1_000_000, pa.timestamp("us", "UTC"))
    assert len(IndexExpression("to_date", {}).extremes(moments)) < 10
    assert len(IndexExpression("hour", {}).extremes(moments)) == len(moments)


def test_the_least_wall_clock_need_not_be_the_first_moment() -> None:
    """Clocks in Oslo were set back by an hour at this moment."""
    changed = 1_698_541_200
    moments = pa.array([changed - 600, changed + 60, changed + 7_200])
    expression = IndexExpression("from_unixtime", {}, named_zone("Europe/Oslo"))
    every, some = expression.of(moments), expression.of(expression.extremes(moments))
    assert pc.min_max(some) == pc.min_max(every)
    assert pc.min_max(every)["min"].as_py() == every[1].as_py()
