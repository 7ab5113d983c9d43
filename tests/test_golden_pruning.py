"""Skipping files by statistics and partitions by path loses no row, whoever wrote them."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakewarden import Table
from lakewarden.engine.table.schema import RECORD_KEY
from tests.canonical import canonical_rows
from tests.golden_tables import GOLDEN_TABLES, GoldenTable

_COMPARABLE = (
    pa.types.is_string,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date32,
    pa.types.is_timestamp,
)


def filters(rows: pa.Table) -> list[pc.Expression]:
    """On every column an equality or a bound, by turns, with a value that the table has."""
    found = []
    for place, field in enumerate(rows.schema):
        values = rows.column(field.name).drop_null().to_pylist()
        if not values or not any(is_(field.type) for is_ in _COMPARABLE):
            found.append(pc.field(field.name).is_null())
            continue
        column, value = pc.field(field.name), pa.scalar(values[place % len(values)], field.type)
        found.append((column == value, column > value, column <= value)[place % 3])
    return found


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_a_filter_returns_the_rows_that_filtering_everything_returns(
    name: str, golden: GoldenTable
) -> None:
    table = Table(str(golden(name)))
    everything = table.read_arrow()
    for expression in filters(everything):
        expected = Counter(map(str, canonical_rows(everything.filter(expression))))
        assert Counter(map(str, canonical_rows(table.read_arrow(filter=expression)))) == expected


@pytest.mark.parametrize("name", GOLDEN_TABLES)
def test_a_lookup_returns_the_rows_with_the_keys(name: str, golden: GoldenTable) -> None:
    table = Table(str(golden(name)))
    everything = table.read_arrow()
    if RECORD_KEY not in everything.column_names:
        assert name == "cow_virtual_keys_utc"
        assert table.lookup(["k001", "none"]).column("id").to_pylist() == ["k001"]
        return
    keys = everything.column(RECORD_KEY).to_pylist()[::2]
    expected = everything.filter(pc.field(RECORD_KEY).isin(keys))
    assert canonical_rows(table.lookup([*keys, "no such key"])) == canonical_rows(expected)


def test_partitions_and_files_are_skipped_and_the_reason_said(golden: GoldenTable) -> None:
    table = Table(str(golden("cow_clean_keep_latest_commits")))
    scan = table.explain(filter=[("p", "=", "a")])
    assert {slice_.partition for slice_ in scan.slices} == {"p=a"}
    assert {item.partition for item in scan.skipped} == {"p=b", "p=c"}
    nothing = table.explain(filter=[("n", ">", 1_000_000)])
    assert nothing.slices == ()
    assert all("column statistics" in item.reason for item in nothing.skipped)
    assert table.read_arrow(filter=[("n", ">", 1_000_000)]).num_rows == 0


def test_explanation_counts_partitions_file_groups_row_groups_and_columns(
    golden: GoldenTable,
) -> None:
    table = Table(str(golden("cow_clean_keep_latest_commits")))
    explained = table.explain(["id"], filter=[("p", "in", ["a", "b"]), ("n", "<", 1)])
    assert explained.partitions_skipped_count == 1
    assert explained.file_groups_skipped_count >= 1
    assert "columns" in str(explained)
    assert all(row["reason"] for row in explained.rows())
