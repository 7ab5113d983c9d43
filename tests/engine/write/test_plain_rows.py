"""Plain rows: numbers take the width of the table's columns, as long as nothing is lost by it."""

from typing import Any

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.write.operations import PlainRows

INTS = pa.list_(pa.int32())
PAIR = pa.struct([("n", pa.int32()), ("text", pa.string())])


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        ([1, None], pa.int32(), pa.int32()),
        ([2**31 - 1], pa.int32(), pa.int32()),
        ([2**31], pa.int32(), pa.int64()),
        ([0.5, None], pa.float32(), pa.float32()),
        ([float("inf"), float("nan")], pa.float32(), pa.float32()),
        ([1e300], pa.float32(), pa.float64()),
        ([1], pa.string(), pa.int64()),
        ([1.0], pa.int32(), pa.float64()),
        ([True], pa.int32(), pa.bool_()),
        ([[1, 2], None], INTS, INTS),
        ([[2**31]], INTS, pa.list_(pa.int64())),
        ([{"n": 1, "text": "a"}], PAIR, PAIR),
        # A field that the table does not have must not get lost.
        ([{"n": 1, "more": "a"}], PAIR, pa.struct([("n", pa.int64()), ("more", pa.string())])),
    ],
)
def test_values_take_the_type_of_the_column_if_it_takes_all_of_them(
    values: list[Any], wanted: pa.DataType, expected: pa.DataType
) -> None:
    rows = PlainRows([{"v": value} for value in values])
    column = rows.table(pa.schema([("v", wanted)])).column("v")
    assert column.type == expected
    assert repr(column.to_pylist()) == repr(values)


def test_columns_that_the_table_does_not_have_keep_their_types() -> None:
    rows = PlainRows([{"v": 1}, {"w": 0.5}]).table(pa.schema([("v", pa.int32())]))
    assert rows.schema == pa.schema([("v", pa.int32()), ("w", pa.float64())])
    assert rows.to_pylist() == [{"v": 1, "w": None}, {"v": None, "w": 0.5}]


def test_values_of_several_kinds_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        PlainRows([{"v": 1}, {"v": "one"}]).table(pa.schema([]))
    assert refused.value.code == "unreadable_rows"


def test_dictionaries_leave_the_columns_of_a_table_as_wide_as_they_are() -> None:
    schema = pa.schema([("id", pa.int32()), ("v", pa.int32()), ("f", pa.float32())])
    table = Table.create("", schema, key=["id"], storage=fresh_memory_storage())
    table.upsert([{"id": 1, "v": 1, "f": 0.5}, {"id": 2, "v": 2, "f": 0.5}])
    table.merge([{"id": 2, "v": 3, "f": 1.5}, {"id": 3, "v": 3, "f": 1.5}])
    table.delete([{"id": 1}])
    rows = table.read_arrow(schema.names).sort_by("id")
    assert rows == pa.table({"id": [2, 3], "v": [3, 3], "f": [1.5, 1.5]}, schema=schema)
