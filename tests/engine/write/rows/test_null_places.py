"""Nulls where a type allows none."""

import pyarrow as pa
import pytest

from lakewarden.engine.write.rows.prepare import null_place

STRICT = pa.field("n", pa.int32(), nullable=False)
STRUCT = pa.struct([STRICT, pa.field("m", pa.int32())])
LIST = pa.list_(pa.field("element", pa.int32(), nullable=False))
MAP = pa.map_(pa.string(), pa.field("value", STRUCT))


@pytest.mark.parametrize(
    ("type_", "values", "place"),
    [
        (pa.int32(), [1, None], None),
        (STRUCT, [{"n": 1, "m": None}, None], None),
        (STRUCT, [{"n": 1}, {"n": None}], "v.n"),
        (LIST, [[1], None, []], None),
        (LIST, [[1], [2, None]], "v[]"),
        (pa.list_(pa.field("element", STRUCT)), [[{"n": 1}], [None]], None),
        (pa.list_(pa.field("element", STRUCT)), [[{"n": 1}, {"n": None}]], "v[].n"),
        (MAP, [[("a", {"n": 1}), ("b", None)], None], None),
        (MAP, [None, [("a", {"n": None})]], "v[].n"),
    ],
)
def test_nulls_are_found_at_any_depth(
    type_: pa.DataType, values: list[object], place: str | None
) -> None:
    loose = pa.array(values, _loose(type_))
    for array in (loose, pa.concat_arrays([loose, loose]).slice(len(loose))):
        assert null_place(array, pa.field("v", type_), "v") == place


def test_a_column_itself_may_have_to_be_filled() -> None:
    values = pa.array([1, None], pa.int32())
    assert null_place(values, STRICT, "n") == "n"
    assert null_place(values.slice(0, 1), STRICT, "n") is None


def _loose(type_: pa.DataType) -> pa.DataType:
    """The same type with everything nullable, as values may come."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(inner.name, _loose(inner.type)) for inner in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _loose(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), pa.field("value", _loose(type_.item_type)))
    return type_
