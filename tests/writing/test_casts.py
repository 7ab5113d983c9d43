"""Casts: rows take the table's types where nothing is lost, else the first value is named.

The twin takes value after value through Python's own numbers.
"""

import math
import struct
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.sampling import IS_SIMULATION

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int32()), ("x", pa.float32())])
D = pa.decimal128(8, 2)
NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), D)
whole = (
    st.integers(-(1 << 63), (1 << 63) - 1)
    | st.integers(-5, 5)
    | st.sampled_from([1 << 24, 1 << 31])
)
fractions = st.floats() | st.integers(-5, 5).map(float) | st.sampled_from([0.1, 1e10, 2.5, -0.0])
VALUES = {
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): whole,
    pa.float32(): st.floats(width=32),
    pa.float64(): fractions,
    D: st.decimals(-99999, 99999, places=2),
}


def table_with(column: pa.DataType) -> Table:
    schema = pa.schema([("id", pa.string()), ("v", column)])
    return Table.create("casts", schema, key=["id"], storage=fresh_memory_storage())


def is_held(value: object, type_: pa.DataType) -> bool:
    """Whether a number is one of a type's, exactly."""
    if value is None:
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return pa.types.is_floating(type_)
    exact = Fraction(value)  # type: ignore[arg-type]
    if pa.types.is_integer(type_):
        return exact.denominator == 1 and abs(exact + Fraction(1, 2)) < 1 << (type_.bit_width - 1)
    if pa.types.is_decimal(type_):
        return (exact * 100).denominator == 1 and abs(exact) < 10**6
    try:
        packed = struct.unpack(
            "f" if type_ == pa.float32() else "d",
            struct.pack("f" if type_ == pa.float32() else "d", float(exact)),
        )
    except OverflowError:
        return False
    return math.isfinite(packed[0]) and bool(Fraction(packed[0]) == exact)


@given(st.data(), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
@settings(max_examples=80 if IS_SIMULATION else 30, deadline=None)
def test_numbers_are_cast_exactly_or_named(
    data: st.DataObject, given_type: pa.DataType, type_: pa.DataType
) -> None:
    values = data.draw(st.lists(st.none() | VALUES[given_type], min_size=1, max_size=4))
    table = table_with(type_)
    ids = pa.array([str(number) for number in range(len(values))])
    rows = pa.table({"id": ids, "v": pa.array(values, given_type)})
    try:
        table.upsert(rows)
    except InvalidRequest as error:
        code, parameters = error.code, error.parameters
    else:
        found = table.read_arrow(["id", "v"]).sort_by("id")["v"]
        assert found.type == type_
        assert all(is_held(value, type_) for value in values)
        back = [
            None if one is None else str(Fraction(one)) if math.isfinite(one) else str(one)
            for one in found.to_pylist()
        ]
        assert back == [
            None if one is None else str(Fraction(one)) if math.isfinite(one) else str(one)
            for one in values
        ]
        return
    assert not table.timeline().completed()
    mixes = {pa.types.is_floating(given_type), pa.types.is_decimal(given_type)}
    if code == "incompatible_type":
        assert pa.types.is_decimal(type_) or pa.types.is_decimal(given_type)
        assert True in mixes
        return
    assert code == "value_does_not_fit"
    # Whole numbers beyond what every fraction of a type holds are refused, even if they are even.
    first = next(one for one in values if str(pa.scalar(one, given_type)) == parameters["value"])
    beyond = isinstance(first, int) and pa.types.is_floating(type_) and abs(first) > 1 << 24
    beyond_whole = isinstance(first, float) and pa.types.is_integer(type_)
    assert beyond or beyond_whole or not is_held(first, type_)


def test_a_pandas_frame_leaves_a_short_column_short() -> None:
    table = Table.create("pandas", SCHEMA, key=["id"], storage=fresh_memory_storage())
    frame = pd.DataFrame({"id": ["a", "b"], "n": [1, 2], "x": [0.5, 1.5]})
    for _ in range(2):
        commit = table.upsert(frame)
        assert (commit.columns_added, commit.columns_widened) == ((), ())
    commit = table.upsert(frame, evolve=True)
    assert (commit.columns_added, commit.columns_widened) == ((), ())
    assert table.schema.field("n").type == pa.int32()
    # What pandas makes of whole numbers with a gap among them.
    table.upsert(pd.DataFrame({"id": ["a", "b"], "n": [7, None], "x": [0.5, None]}))
    assert table.read_arrow(["n"])["n"].to_pylist() == [7, None]


@pytest.mark.parametrize("write", ["upsert", "insert", "bulk_insert", "overwrite", "merge"])
def test_columns_are_added_and_widened_when_somebody_asks(write: str) -> None:
    table = Table.create("asked", SCHEMA, key=["id"], storage=fresh_memory_storage())
    table.upsert([{"id": "a", "n": 1, "x": 0.5}])
    rows = pa.table({"id": ["b"], "n": [1 << 40], "x": [0.25], "new": ["y"]})
    before = table.timeline().completed()
    with pytest.raises(InvalidRequest, match="evolve=True") as refused:
        getattr(table, write)(rows)
    assert refused.value.code == "unknown_columns"
    with pytest.raises(InvalidRequest, match="1099511627776") as unfit:
        getattr(table, write)(rows.drop_columns(["new"]))
    assert unfit.value.code == "value_does_not_fit"
    assert table.timeline().completed() == before
    commit = getattr(table, write)(rows, evolve=True)
    assert (commit.columns_added, commit.columns_widened) == (("new",), ("n",))
    found = table.read_arrow(["id", "n", "x", "new"], [("id", "=", "b")]).to_pylist()
    assert found == [{"id": "b", "n": 1 << 40, "x": 0.25, "new": "y"}]


def test_texts_are_never_read_as_numbers() -> None:
    table = table_with(pa.int64())
    with pytest.raises(InvalidRequest) as refused:
        table.upsert(pa.table({"id": ["a"], "v": ["1"]}))
    assert refused.value.code == "incompatible_type"


def test_the_first_value_without_a_place_is_named_with_its_row() -> None:
    table = table_with(pa.float32())
    rows = pa.table({"id": ["a", "b", "c"], "v": [0.5, 0.1, 0.2]})
    with pytest.raises(InvalidRequest, match=r"0\.1 \(row 1\)"):
        table.upsert(rows)
    table = table_with(D)
    with pytest.raises(InvalidRequest, match=r"1\.234"):
        table.upsert(pa.table({"id": ["a"], "v": [Decimal("1.234")]}))


def test_a_merge_rounds_nothing_of_what_the_table_has() -> None:
    table = table_with(pa.int64())
    large = (1 << 62) + 1
    table.upsert([{"id": "a", "v": large}, {"id": "b", "v": 1}])
    table.merge(pd.DataFrame({"id": ["b", "c"], "v": [2.0, None]}))
    rows = table.read_arrow(["id", "v"]).sort_by("id").to_pylist()
    assert [row["v"] for row in rows] == [large, 2, None]
