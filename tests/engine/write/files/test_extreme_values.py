"""Values at the limits of what files hold: they come back, and statistics say what is true."""

import io
import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.table.config import TableType
from lakewarden.engine.write.files.spec import base_file_summaries
from tests.engine.read.counted_reads import CountedReads
from tests.engine.write.small_table import COLUMNS, Row, SmallTable, keyed, write_spec_of

A1: Row = {"k": "a", "v": "a1", "ts": 1}
B1: Row = {"k": "b", "v": "b1", "ts": 1}


def test_a_nan_is_the_largest_number_of_a_file() -> None:
    columns = pa.schema([*COLUMNS, pa.field("x", pa.float64())])
    table = SmallTable(write_spec_of(columns))
    rows = [{**A1, "x": 1.0}, {**B1, "x": float("nan")}]
    summary = table.write(inserts=keyed(rows, columns=columns)).file.columns["x"]
    assert summary.minimum is not None
    assert summary.minimum.as_py() == 1.0
    assert np.isnan(summary.maximum.as_py())


def test_very_long_values_have_statistics_and_keys() -> None:
    table = SmallTable(write_spec_of())
    written = table.write(inserts=keyed([{**A1, "k": "x" * 100_000, "v": "y" * 100_000}]))
    summary = written.file.columns["v"]
    assert summary.maximum is not None
    assert summary.maximum.as_py() == "y" * 100_000
    assert summary.packed_bytes > 0
    assert (
        key_footer(
            pq.ParquetFile(io.BytesIO(table.storage.read(str(written.stat.path)))).metadata
        ).max_key
        == "x" * 100_000
    )


def test_very_long_values_are_read_back_some_at_a_time() -> None:
    table = SmallTable(write_spec_of())
    length = 1 << 20
    rows = [
        {"k": f"k{number}", "v": random.Random(number).randbytes(length // 2).hex(), "ts": 1}
        for number in range(8)
    ]
    written = table.write(inserts=keyed(rows)).file
    path = written.path
    footer = pq.ParquetFile(io.BytesIO(table.storage.read(path))).metadata
    counted = CountedReads(table.storage)
    summary = base_file_summaries(counted, path, footer, ("v",), ())["v"]
    assert summary == written.columns["v"]
    assert (summary.minimum.as_py(), summary.value_count) == (min(row["v"] for row in rows), 8)
    assert max(counted.fetched) < 2 * length


def test_two_thousand_columns() -> None:
    names = [f"c{number}" for number in range(2000)]
    columns = pa.schema([*COLUMNS, *(pa.field(name, pa.int32()) for name in names)])
    table = SmallTable(write_spec_of(columns))
    row = {**A1, **dict.fromkeys(names, 1)}
    table.write(inserts=keyed([row, {**row, "k": "b"}], columns=columns))
    table.write(updates=keyed([{**row, "c1999": 2, "ts": 2}], columns=columns))
    assert [found["c1999"] for found in table.rows()] == [2, 1]


@pytest.mark.parametrize("table_type", TableType)
def test_decimals_at_the_limit_survive(table_type: TableType) -> None:
    columns = pa.schema([*COLUMNS, pa.field("x", pa.decimal128(38, 10))])
    largest = Decimal("9999999999999999999999999999.9999999999")
    # A minus sign would round to the digits that Python computes with.
    smallest = largest.copy_negate()
    table = SmallTable(write_spec_of(columns, table_type=table_type))
    table.write(inserts=keyed([{**A1, "x": largest}], columns=columns))
    table.write(updates=keyed([{**A1, "x": smallest}], columns=columns))
    assert table.rows()[0]["x"] == smallest


def test_hostile_keys_and_partitions_come_back() -> None:
    keys = ["a,b:c", "\"'", "é\U0001f600", "line\nbreak", "\x00", " "]
    table = SmallTable(write_spec_of(table_type=TableType.MERGE_ON_READ))
    table.key = replace(table.key, partition="x y/é='%2F")
    rows = [{**A1, "k": key} for key in keys]
    table.write(inserts=keyed(rows))
    table.write(updates=keyed([{**row, "v": "new"} for row in rows]))
    table.write(updates=keyed(rows[:1], unconditional=[0]))
    assert table.values() == dict.fromkeys(keys[1:], "new")
