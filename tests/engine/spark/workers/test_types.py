"""Spark's names for Arrow's types, and the form in which it takes values."""

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.types import ddl, spark_type, wire_schema


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.bool_(), "boolean"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.binary(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ms", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.list_(pa.map_(pa.string(), pa.int64())), "array<map<string,bigint>>"),
        (pa.struct([("a b", pa.int32()), ("c", pa.date32())]), "struct<`a b`:int,`c`:date>"),
    ],
)
def test_spark_has_a_name_for(type_: pa.DataType, expected: str) -> None:
    assert spark_type(type_) == expected


@pytest.mark.parametrize(
    "type_",
    [
        pa.decimal256(50, 2),
        pa.timestamp("ns", "UTC"),
        pa.time64("us"),
        pa.null(),
        pa.list_(pa.time32("ms")),
        pa.map_(pa.string(), pa.time32("ms")),
        pa.struct([("fine", pa.int32()), ("not", pa.time32("ms"))]),
    ],
)
def test_a_type_spark_lacks_is_refused_by_the_name_of_its_column(type_: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match="'odd'") as refused:
        ddl(pa.schema([("id", pa.int32()), ("odd", type_)]))
    assert refused.value.code == "unsupported_spark_type"


def test_column_names_may_hold_anything() -> None:
    assert ddl(pa.schema([("a`b c.d", pa.int32())])) == "`a``b c.d` int"


def test_values_travel_in_the_one_form_spark_takes() -> None:
    held = pa.schema(
        [
            ("at", pa.timestamp("ms", "UTC")),
            ("local", pa.list_(pa.timestamp("ms"))),
            ("uuid", pa.struct([("bytes", pa.binary(16))])),
            ("by_key", pa.map_(pa.string(), pa.binary(2))),
            ("id", pa.string()),
        ]
    )
    assert wire_schema(held) == pa.schema(
        [
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.list_(pa.timestamp("us"))),
            ("uuid", pa.struct([("bytes", pa.binary())])),
            ("by_key", pa.map_(pa.string(), pa.binary())),
            ("id", pa.string()),
        ]
    )
