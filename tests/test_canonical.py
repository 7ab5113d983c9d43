"""Canonical rows are the same for equal tables and spell each type in one way."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.canonical import canonical_rows, difference

NOON = datetime(2024, 2, 29, 12, 34, 56, 123456)
OSLO = timezone(timedelta(hours=1))


def value_of(value: object, kind: pa.DataType) -> object:
    (row,) = canonical_rows(pa.table({"column": pa.array([value], kind)}))
    return row["column"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, pa.int32(), None),
        (True, pa.bool_(), True),
        (-1, pa.int8(), -1),
        (1 << 60, pa.int64(), 1 << 60),
        ("Ærø", pa.string(), "Ærø"),
        ("text", pa.large_string(), "text"),
        ("text", pa.string_view(), "text"),
        ("text", pa.dictionary(pa.int8(), pa.string()), "text"),
        (0.25, pa.float64(), 0.25),
        (0.1, pa.float32(), 0.10000000149011612),
        (float("nan"), pa.float32(), "nan"),
        (float("inf"), pa.float64(), "inf"),
        (float("-inf"), pa.float64(), "-inf"),
        (Decimal("1.5"), pa.decimal128(8, 3), "1.500"),
        (Decimal("-0.000001"), pa.decimal128(20, 6), "-0.000001"),
        (Decimal(100), pa.decimal128(10, 0), "100"),
        (date(2024, 2, 29), pa.date32(), "2024-02-29"),
        (NOON, pa.timestamp("us"), "2024-02-29T12:34:56.123456"),
        (NOON.replace(tzinfo=UTC), pa.timestamp("us", "UTC"), "2024-02-29T12:34:56.123456Z"),
        (NOON.replace(tzinfo=OSLO), pa.timestamp("us", "+01:00"), "2024-02-29T11:34:56.123456Z"),
        (datetime(2024, 1, 1), pa.timestamp("ms"), "2024-01-01T00:00:00.000000"),
        (datetime(2024, 1, 1), pa.timestamp("ns"), "2024-01-01T00:00:00.000000"),
        (b"\x00\xff", pa.binary(), "base64:AP8="),
        (b"\x00\xff", pa.binary(2), "base64:AP8="),
        ([1, None], pa.list_(pa.int32()), [1, None]),
        ([date(2024, 1, 1)], pa.large_list(pa.date32()), ["2024-01-01"]),
        (
            {"a": Decimal(1), "b": None},
            pa.struct([("a", pa.decimal128(5, 2)), ("b", pa.string())]),
            {"a": "1.00", "b": None},
        ),
        ([("b", 1.5), ("a", None)], pa.map_(pa.string(), pa.float64()), {"a": None, "b": 1.5}),
        ([(10, "ten"), (9, "nine")], pa.map_(pa.int32(), pa.string()), {"10": "ten", "9": "nine"}),
    ],
    ids=str,
)
def test_a_value_has_one_spelling(value: object, kind: pa.DataType, expected: object) -> None:
    assert value_of(value, kind) == expected


def test_the_keys_of_a_map_are_sorted() -> None:
    answer = value_of([("b", 1), ("a", 2)], pa.map_(pa.string(), pa.int32()))
    assert list(answer) == ["a", "b"]


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(TypeError, match="duration"):
        value_of(timedelta(1), pa.duration("us"))


def test_rows_are_ordered_by_key_then_partition_then_content() -> None:
    table = pa.table(
        {
            "_hoodie_record_key": ["b", "a", "a", "a"],
            "_hoodie_partition_path": ["p", "q", "p", "p"],
            "value": [1, 2, 4, 3],
        }
    )
    assert [row["value"] for row in canonical_rows(table)] == [3, 4, 2, 1]


def test_a_table_without_rows_has_none() -> None:
    assert canonical_rows(pa.table({"a": pa.array([], pa.int32())})) == []
    assert canonical_rows(pa.table({})) == []


def test_equal_reads_do_not_differ_whatever_their_order() -> None:
    assert difference([{"a": 1, "b": 2}, {"a": 3}], [{"a": 3}, {"b": 2, "a": 1}]) == ""


def test_a_difference_names_missing_and_extra_rows() -> None:
    found = difference([{"a": 1}, {"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}])
    assert found.splitlines() == [
        "3 rows expected, 2 found",
        'missing: {"a": 1}',
        'missing: {"a": 2}',
        'not expected: {"a": 3}',
    ]


def test_a_long_difference_is_cut() -> None:
    found = difference([], [{"a": number} for number in range(9)])
    assert found.splitlines()[-1] == "not expected: 4 more"
