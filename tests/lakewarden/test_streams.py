"""Tables and batches are streams for whatever reads Arrow; what calls return shows itself."""

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lakewarden import Table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("qty", pa.int64())])
ROWS = 100


@pytest.fixture
def orders(tmp_path: Path) -> Table:
    table = Table.create(
        str(tmp_path / "orders"), SCHEMA, key=["id"], partition=["city"], type="mor"
    )
    rows = [
        {"id": f"{number}", "city": "Oslo" if number % 2 else "Rome", "qty": number}
        for number in range(ROWS)
    ]
    table.bulk_insert(rows)
    table.upsert([{**rows[0], "qty": -1}])
    return table


def test_duckdb_reads_a_table_by_its_name_in_python_and_sees_later_writes(orders: Table) -> None:
    query = "select count(*), min(qty) from orders where city = 'Rome'"
    assert duckdb.sql(query).fetchall() == [(ROWS // 2, -1)]
    orders.delete(["0"])
    assert duckdb.sql(query).fetchall() == [(ROWS // 2 - 1, 2)]


def test_duckdb_reads_batches(orders: Table) -> None:
    batches = orders.read_batches(columns=["qty"], filter="qty >= 50")
    assert batches.schema.names == ["qty"]
    assert duckdb.sql("select sum(qty) from batches").fetchall() == [(sum(range(50, ROWS)),)]


def test_polars_reads_a_table_and_batches(orders: Table) -> None:
    assert pl.DataFrame(orders).select("qty").min().item() == -1
    found = pl.DataFrame(orders.read_batches(columns=["id", "qty"], filter="qty = 7"))
    assert found.rows() == [("7", 7)]


def test_arrow_reads_what_python_has_left_of_batches(orders: Table) -> None:
    batches = orders.read_batches(columns=["id"])
    taken = next(batches).num_rows
    assert 0 < taken < ROWS
    assert pa.RecordBatchReader.from_stream(batches).read_all().num_rows == ROWS - taken
    assert next(batches, None) is None


def test_an_empty_table_is_an_empty_stream(orders: Table) -> None:
    orders.delete_where("qty is not null")
    assert pa.table(orders).schema == orders.schema
    assert pl.DataFrame(orders).shape == (0, len(orders.schema))


def test_what_calls_return_shows_itself_in_few_lines(orders: Table) -> None:
    plan = orders.compaction.schedule(cancellable=True)
    shown = [
        orders.timeline(),
        orders.history(),
        orders.plans(),
        orders.health(),
        orders.explain(filter="qty > 3 and city = 'Oslo'"),
        orders.file_slices(),
        plan,
        orders.compaction.run(),
        orders.clean(),
        orders.retention(),
        orders.upsert([{"id": "a", "city": "Oslo", "qty": 1}]),
    ]
    for value in shown:
        lines = repr(value).splitlines()
        assert 1 < len(lines) <= 25, value
        assert "object at" not in repr(value)
        assert value._repr_html_().startswith("<table>")


def test_rows_about_a_table_go_to_arrow_and_pandas(orders: Table) -> None:
    timeline = orders.timeline()
    assert timeline.to_arrow().column("action").to_pylist() == ["deltacommit", "deltacommit"]
    assert list(orders.health().to_pandas()["metric"])[:2] == ["file_groups", "table_size"]
    explained = orders.explain(filter="city = 'Oslo'").to_arrow()
    assert sorted(explained.column("verdict").to_pylist()) == ["read", "skipped"]
