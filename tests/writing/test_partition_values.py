"""Partition values: what is written under any of them reads back, and filters find just that.

The twin is a list of rows and Python's own comparisons.
"""

import datetime
import operator
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage

# What a row with such a value is refused by, before anything is written.
REFUSALS = {"unsafe_partition_path", "ambiguous_partition_value"}
HIVE, ENCODED = (
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.write.partitionpath.urlencode",
)
COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
}
texts = st.one_of(
    st.sampled_from(["p=a", "p=", "=", "a", "", "a/b", "p=a/b", "%2F", "a%41", "A", "é", " ", "1"]),
    st.sampled_from(["__HIVE_DEFAULT_PARTITION__", "null", ".", "..", ".hoodie", "a:b", "x\ty"]),
    st.text(max_size=4),
)
KINDS = {
    pa.string(): texts,
    pa.int32(): st.integers(-3, 12),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.date32(): st.dates(datetime.date(1, 1, 1)),
    pa.bool_(): st.booleans(),
    pa.decimal128(6, 2): st.decimals(-999, 999, places=2),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[object]]:
    type_ = draw(st.sampled_from(list(KINDS)))
    return type_, draw(st.lists(st.none() | KINDS[type_], min_size=1, max_size=4))


def is_kept(value: object, name: str, wanted: object) -> bool:
    return value is not None and COMPARISONS[name](value, wanted)


def refusal(table: Table, rows: pa.Table) -> str | None:
    """Why the rows are not written, if they are not."""
    try:
        table.upsert(rows)
    except InvalidRequest as error:
        return error.code
    return None


@given(columns(), st.booleans(), st.booleans(), st.sampled_from(["cow", "mor"]))
@settings(max_examples=30, deadline=None)
def test_rows_read_back_and_filters_find_what_they_say(
    column: tuple[pa.DataType, list[object]], hive: bool, encoded: bool, kind: str
) -> None:
    type_, values = column
    schema = pa.schema([("id", pa.int32()), ("p", type_)])
    table = Table.create(
        "partitions",
        schema,
        key=["id"],
        partition=["p"],
        type=kind,
        properties={HIVE: hive, ENCODED: encoded},
        storage=fresh_memory_storage(),
    )
    rows = pa.table([pa.array(range(len(values)), pa.int32()), pa.array(values, type_)], schema)
    code = refusal(table, rows)
    if code is not None:
        assert code in REFUSALS
        assert not table.timeline().completed()
        return
    expected = list(enumerate(values))
    for use_metadata in (True, False):
        found = table.read_arrow(["id", "p"], use_metadata=use_metadata).to_pylist()
        assert sorted((row["id"], row["p"]) for row in found) == expected
        for wanted in {value for value in values if value is not None}:
            for name in COMPARISONS:
                asked = [("p", name, pa.scalar(wanted, type_))]
                kept = table.read_arrow(["id"], asked, use_metadata=use_metadata)
                assert sorted(kept["id"].to_pylist()) == [
                    id_ for id_, value in expected if is_kept(value, name, wanted)
                ]
        nulls = table.read_arrow(["id"], pa.compute.field("p").is_null(), use_metadata=use_metadata)
        assert sorted(nulls["id"].to_pylist()) == [id_ for id_, value in expected if value is None]


@pytest.mark.parametrize("hive", [True, False])
def test_a_value_that_begins_like_its_column_is_found(memory_path: str, hive: bool) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string())])
    table = Table.create(memory_path, schema, key=["id"], partition=["p"], properties={HIVE: hive})
    table.upsert([{"id": "x", "p": "p=a"}, {"id": "y", "p": "a"}])
    for value, key in (("p=a", "x"), ("a", "y")):
        assert table.read_arrow(["id"], [("p", "=", value)])["id"].to_pylist() == [key]


def test_a_row_whose_partition_value_would_read_as_null_is_refused(memory_path: str) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32())])
    table = Table.create(memory_path, schema, key=["id"], partition=["p"])
    with pytest.raises(InvalidRequest) as refusal:
        table.upsert([{"id": "k", "p": "", "v": 1}])
    assert refusal.value.code == "ambiguous_partition_value"
    assert not table.timeline().completed()
    table.upsert([{"id": "k", "p": None, "v": 1}])
    assert table.read_arrow(["p"])["p"].to_pylist() == [None]


def test_a_decimal_of_a_partition_is_compared_as_a_number(memory_path: str) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.decimal128(6, 2))])
    table = Table.create(memory_path, schema, key=["id"], partition=["p"])
    table.upsert([{"id": "x", "p": Decimal("9.50")}, {"id": "y", "p": Decimal("10.00")}])
    found = table.read_arrow(["id"], [("p", "<", Decimal("10.00"))])
    assert found["id"].to_pylist() == ["x"]
