"""Columns of milliseconds whose files say microseconds, as releases before 1.1 wrote them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.formats.widening import widen_stored
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Storage

MILLIS = 1577836800000
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("t", pa.timestamp("ms", "UTC"))])


def rows_of(*numbers: int, n: int = 1) -> pa.Table:
    rows = [{"id": f"k{i}", "n": n, "t": MILLIS + i * 7} for i in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def say_micros(storage: Storage) -> None:
    """Rewrite every base file so that its milliseconds are called microseconds."""
    for entry in storage.walk(""):
        if not entry.name.endswith(".parquet") or entry.path.startswith(".hoodie"):
            continue
        with storage.open(entry.path) as source:
            rows = pq.read_table(source)
        place = rows.column_names.index("t")
        raw = rows.column(place).cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
        sink = pa.BufferOutputStream()
        pq.write_table(rows.set_column(place, "t", raw), sink)
        storage.put(entry.path, sink.getvalue().to_pybytes())


def times(table: Table, **how: object) -> list[int]:
    found = table.read_arrow(["id", "t"], **how).sort_by("id")["t"]  # type: ignore[arg-type]
    assert found.type == pa.timestamp("ms", "UTC")
    return [value - MILLIS for value in found.cast(pa.int64()).to_pylist()]


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> Table:
    storage = fresh_memory_storage()
    made = Table.create(
        "millis",
        SCHEMA,
        key=["id"],
        ordering=["n"],
        type=request.param,
        storage=storage,
    )
    made.upsert(rows_of(0, 1, 2))
    say_micros(storage)
    return made


def test_millis_are_read_as_such_whatever_files_call_them(table: Table) -> None:
    for use_metadata in (True, False):
        assert times(table, use_metadata=use_metadata) == [0, 7, 14]
        late = pa.scalar(MILLIS + 7, pa.timestamp("ms", "UTC"))
        assert times(table, filter=[("t", ">=", late)], use_metadata=use_metadata) == [7, 14]
        assert times(table, filter=[("t", "<", late)], use_metadata=use_metadata) == [0]


def test_files_that_say_micros_are_merged_compacted_and_clustered(table: Table) -> None:
    table.upsert(rows_of(1, n=2))
    assert times(table) == [0, 7, 14]
    if table.config.table_type.name == "MERGE_ON_READ":
        table.compaction.schedule_and_run()
        assert times(table) == [0, 7, 14]
    table.clustering.schedule_and_run(sort_columns="t")
    assert times(table) == [0, 7, 14]
    assert (
        table.delete_where([("t", "=", pa.scalar(MILLIS, SCHEMA.field("t").type))]).rows_deleted
        == 1
    )


def test_millis_inside_other_columns_are_mended_too() -> None:
    def nested(time: pa.DataType) -> pa.DataType:
        return pa.struct([("l", pa.list_(time)), ("m", pa.map_(pa.string(), time))])

    said, meant = nested(pa.timestamp("us", "UTC")), nested(pa.timestamp("ms", "UTC"))
    raw = [{"l": [1, None, 3], "m": [("a", 5)]}, None]
    assert widen_stored(pa.array(raw, said), meant).equals(pa.array(raw, meant))
