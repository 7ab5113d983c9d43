"""NaN: no bound of a file or row group says anything of it, and none hides a row beside it.

The twin is the same filter on all rows.
"""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden import Table
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage
from tests.sampling import IS_SIMULATION

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.float64()), ("w", pa.float32())])
NAN, INF = math.nan, math.inf
VALUES = st.sampled_from([None, NAN, -INF, -1e300, -2.5, -1.0, -0.0, 0.0, 0.5, 2.0, 100.0, INF])
V, W = pc.field("v"), pc.field("w")
FILTERS = (
    [("v", ">", 1.5)],
    [("v", ">=", 0.0)],
    [("v", "<", 5.0)],
    [("v", "=", 2.0)],
    [("v", "=", 0.0)],
    [("v", "!=", 2.0)],
    [("v", "in", [2.0, INF])],
    [("v", "in", [NAN])],
    [("v", "not in", [2.0, -1.0])],
    [("v", "!=", 2.0), ("w", "<", 1.0)],
    ~(V > 1.5),
    ~(V <= W),
    V.is_null(),
    ~V.is_null(),
    V.is_nan(),
    pc.is_finite(V),
    pc.add(V, 1) > 2.5,
)


def table_of(storage: Storage, kind: str) -> Table:
    return Table.create("nan", SCHEMA, key=["id"], type=kind, storage=storage)


def rows_of(values: list[float | None], first: int = 0) -> pa.Table:
    ids = pa.array([str(first + number) for number in range(len(values))])
    return pa.table([ids, pa.array(values, pa.float64()), pa.array(values, pa.float32())], SCHEMA)


def assert_filters_hide_nothing(table: Table) -> None:
    everything = table.read_arrow(SCHEMA.names)
    for filter_ in FILTERS:
        predicate = bind_filter(filter_, SCHEMA)
        assert predicate is not None
        wanted = sorted(predicate.apply(everything)["id"].to_pylist())
        for use_metadata in (True, False):
            found = table.read_arrow(["id"], filter_, use_metadata=use_metadata)
            assert sorted(found["id"].to_pylist()) == wanted, (filter_, use_metadata)


@given(st.lists(VALUES, min_size=1, max_size=4), VALUES, st.sampled_from(["cow", "mor"]))
@settings(max_examples=30 if IS_SIMULATION else 6, deadline=None)
def test_filters_find_every_row_beside_a_nan(
    values: list[float | None], newer: float | None, kind: str
) -> None:
    table = table_of(fresh_memory_storage(), kind)
    table.upsert(rows_of(values))
    assert_filters_hide_nothing(table)
    table.upsert(rows_of([newer]))
    assert_filters_hide_nothing(table)
    table.clustering.schedule_and_run(sort_columns="v")
    assert_filters_hide_nothing(table)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_in_a_slice_with_a_nan_are_deleted_and_updated_by_filters(kind: str) -> None:
    table = table_of(fresh_memory_storage(), kind)
    table.upsert(rows_of([NAN, 100.0, 0.5]))
    table.upsert(rows_of([1.0], first=2))
    assert table.update_where([("v", ">", 50.0)], {"w": 7.0}).rows_updated == 1
    assert table.delete_where([("w", "=", 7.0)]).rows_deleted == 1
    assert table.delete_where([("v", "!=", 1.0)]).rows_deleted == 1
    assert table.read_arrow(["id"])["id"].to_pylist() == ["2"]


def test_a_nan_that_a_row_group_does_not_tell_of_is_found() -> None:
    table = table_of(fresh_memory_storage(), "cow")
    table.upsert(rows_of([NAN, 2.0]))
    for filter_ in ([("v", "!=", 2.0)], [("v", "not in", [2.0])], ~(V > 1.5)):
        for use_metadata in (True, False):
            found = table.read_arrow(["id"], filter_, use_metadata=use_metadata)
            assert found["id"].to_pylist() == ["0"]
