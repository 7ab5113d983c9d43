"""Which slices Spark may read by itself."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.read.query.answer import Scan
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.spark.scan.frames import Shares, share_out
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.golden_tables import GoldenTable

PLAIN = "cow_all_types"


def shares(path: Path, scan: Scan) -> Shares:
    return share_out(open_storage(Location(str(path))), scan, LocalExecutor())


def rewrite_base_files(path: Path, names: dict[str, str], **types: pa.DataType) -> None:
    """Give columns of all base files other names and types."""
    for file in path.glob("[!.]*/*.parquet"):
        rows = pq.read_table(file)
        fields = [
            pa.field(names.get(field.name, field.name), types.get(field.name, field.type))
            for field in rows.schema
        ]
        renamed = rows.rename_columns([field.name for field in fields])
        pq.write_table(renamed.cast(pa.schema(fields)), file)


@pytest.mark.parametrize(
    ("name", "native", "merged"),
    [
        (PLAIN, 2, 0),
        ("mor_all_types", 0, 2),
        ("cow_virtual_keys_utc", 3, 0),
        # A null in the path is text in the file.
        ("cow_partition_url_encoded", 7, 1),
        # Older files call a column else.
        ("cow_schema_on_read", 2, 1),
        # Only the path knows the value.
        ("cow_drop_partition_columns", 0, 3),
    ],
)
def test_spark_gets_the_slices_it_reads_right(
    name: str, native: int, merged: int, golden: GoldenTable
) -> None:
    found = shares(golden(name), Table(str(golden(name))).explain().scan)
    assert (len(found.addresses), len(found.slices)) == (native, merged)


def test_base_files_alone_are_for_spark(golden: GoldenTable) -> None:
    scan = Table(str(golden("mor_all_types"))).explain(mode="read_optimized").scan
    assert not shares(golden("mor_all_types"), scan).slices


def test_an_expression_that_has_no_sql_text_is_for_arrow(golden: GoldenTable) -> None:
    scan = Table(str(golden(PLAIN))).explain(filter=pc.field("i") > 0, use_metadata=False).scan
    assert not shares(golden(PLAIN), scan).addresses


def test_conditions_are_for_spark(golden: GoldenTable) -> None:
    scan = Table(str(golden(PLAIN))).explain(filter=[("i", ">", 0)], use_metadata=False).scan
    assert not shares(golden(PLAIN), scan).slices


def test_a_store_that_spark_has_no_driver_for_is_left_to_workers(golden: GoldenTable) -> None:
    scan = Table(str(golden(PLAIN))).explain().scan
    storage = open_storage(Location("memory://lake"))
    assert not share_out(storage, scan, LocalExecutor()).addresses


def test_narrower_types_in_older_files_are_widened_by_us(golden_copy: GoldenTable) -> None:
    path = golden_copy(PLAIN)
    rewrite_base_files(path, {}, ts=pa.int32())
    scan = Table(str(path)).explain(columns=["id", "ts"]).scan
    assert not shares(path, scan).addresses
    assert not shares(path, replace(scan, spec=replace(scan.spec, columns=("id",)))).slices


def test_columns_that_differ_by_case_are_not_told_apart_by_spark(golden_copy: GoldenTable) -> None:
    path = golden_copy(PLAIN)
    rewrite_base_files(path, {"i": "B"})
    assert not shares(path, Table(str(path)).explain(columns=["b"]).scan).addresses
    assert not shares(path, Table(str(path)).explain(columns=["id"]).scan).slices


def test_columns_that_a_file_lacks_are_null_for_spark_too(golden_copy: GoldenTable) -> None:
    path = golden_copy(PLAIN)
    rewrite_base_files(path, {"i": "else"})
    assert not shares(path, Table(str(path)).explain(columns=["i"]).scan).slices


def test_a_file_nobody_can_read_is_left_to_the_reader_that_says_why(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy(PLAIN)
    scan = Table(str(path)).explain().scan
    for file in path.glob("[!.]*/*.parquet"):
        file.write_bytes(b"no parquet")
    assert not shares(path, scan).addresses
