"""Values as the texts that Java makes of them; the expected ones were written by Hudi 1.2."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import column_at
from lakewarden.engine.table.keygen.java_dates import java_texts


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([3, -3], pa.int32()), ["3", "-3"]),
        (pa.array([4, -4], pa.int64()), ["4", "-4"]),
        (pa.array([Decimal("12.50"), Decimal("0.00")], pa.decimal128(12, 2)), ["12.50", "0.00"]),
        (pa.array([Decimal(10**20)], pa.decimal128(30, 0)), ["100000000000000000000"]),
        (pa.array([Decimal("1E-10")], pa.decimal128(20, 10)), ["1E-10"]),
        (pa.array(["é", ""]), ["é", ""]),
        (pa.array([date(2024, 1, 2), date(1969, 12, 31)]), ["2024-01-02", "1969-12-31"]),
        (
            pa.array([datetime(2024, 1, 2, 3, 4, 5, 123456)], pa.timestamp("us", "UTC")),
            ["1704164645123456"],
        ),
        (pa.array([datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("us")), ["-1000000"]),
    ],
)
def test_texts_are_those_of_java(values: pa.Array, texts: list[str | None]) -> None:
    assert java_texts(values, "k").to_pylist() == texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (10.0, "10.0"),
        (-0.0, "-0.0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-3, "0.001"),
        (9.999e-4, "9.999E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789012345.6, "1.234567890123456E14"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_floating_point_numbers_are_spelled_as_by_java(value: float, text: str) -> None:
    assert java_texts(pa.array([value, None]), "k").to_pylist() == [text, None]


def test_single_precision_has_its_own_digits() -> None:
    numbers = pa.chunked_array([pa.array([0.1, 16777.216], pa.float32())])
    assert java_texts(numbers, "k").to_pylist() == ["0.1", "16777.217"]


@pytest.mark.parametrize(
    "number", [pa.scalar(2e18), pa.scalar(1e-20), pa.scalar(34736290.0, pa.float32())]
)
def test_numbers_that_releases_of_java_spell_differently_are_refused(number: pa.Scalar) -> None:
    with pytest.raises(InvalidRequest, match="'k'") as refused:
        java_texts(pa.array([number.as_py()], number.type), "k")
    assert refused.value.code == "unsupported_key_value"


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int32())])
def test_types_without_an_agreed_text_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match="'k'") as refused:
        java_texts(pa.nulls(1, kind), "k")
    assert refused.value.code == "unsupported_key_type"


def test_dots_lead_into_structs() -> None:
    rows = pa.table({"st": [{"in": {"k": "a"}}], "x.y": ["b"]})
    assert column_at(rows, "st.in.k").to_pylist() == ["a"]
    assert column_at(rows, "x.y").to_pylist() == ["b"]


@pytest.mark.parametrize("name", ["k", "st.k", "x.k"])
def test_a_column_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name) as refused:
        column_at(pa.table({"st": [{"q": 1}], "x": [1]}), name)
    assert refused.value.code == "missing_key_column"
