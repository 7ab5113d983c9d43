"""Row images: every type as JSON, as Hudi spells it."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewarden.engine.read.merge.row_changes import row_images

NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
MICROS = 1704196800000000


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.string(), 'ø "x"', 'ø "x"'),
        (pa.dictionary(pa.int32(), pa.string()), "x", "x"),
        (pa.bool_(), True, True),
        (pa.int64(), 1 << 60, 1 << 60),
        (pa.float64(), 0.1, 0.1),
        (pa.float64(), float("nan"), "NaN"),
        (pa.float32(), float("-inf"), "-Infinity"),
        (pa.decimal128(20, 2), Decimal("123456789012345678.90"), "123456789012345678.90"),
        (pa.date32(), date(2024, 1, 2), 19724),
        (pa.timestamp("us", "UTC"), NOON, MICROS),
        (pa.timestamp("ms"), NOON.replace(tzinfo=None), MICROS // 1000),
        (pa.time64("us"), time(0, 0, 1), 1_000_000),
        (pa.binary(), b"\x00\x01", "AAE="),
        (pa.list_(pa.date32()), [date(2024, 1, 2), None], [19724, None]),
        (pa.map_(pa.string(), pa.float64()), [("a", float("inf"))], {"a": "Infinity"}),
        (
            pa.struct([("d", pa.decimal128(4, 1)), ("t", pa.timestamp("us"))]),
            {"d": Decimal("1.0"), "t": NOON.replace(tzinfo=None)},
            {"d": "1.0", "t": MICROS},
        ),
    ],
)
def test_a_value_is_one_of_json(kind: pa.DataType, value: object, expected: object) -> None:
    column = pa.array([value, None], kind)
    found = row_images(pa.table({"c": column}).slice(0)).to_pylist()
    assert [json.loads(text)["c"] for text in found] == [expected, None]


def test_columns_stand_in_their_order_as_java_writes_them() -> None:
    rows = pa.table({"b": ["x"], "a": [1.0]})
    assert row_images(rows).to_pylist() == ['{"b": "x", "a": 1.0}']
