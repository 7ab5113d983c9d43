"""We write on tables that Java wrote, and Java reads them and finds nothing untrue."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import Table
from tests.canonical import Row, canonical_rows, difference, ordered
from tests.golden_tables import GoldenTable
from tests.interop.differences import JAVA_DEFECTS
from tests.interop.judges import JavaJudge

WRITTEN_ON = [
    "cow_clustering_completed",
    "cow_failed_write_pending",
    "cow_overwrite_and_delete_partition",
    "cow_partition_url_encoded",
    "cow_record_index_partitioned",
    "cow_restore",
    "mor_all_types",
    "mor_archived_lsm_levels",
    "mor_bucket_simple",
    "mor_compaction_requested",
    "mor_delete_marker",
    "mor_event_time_two_fields",
    "mor_nested_partitions",
    "mor_parquet_log_blocks",
    "mor_record_index_global",
    "mor_record_positions",
    "mor_rollback_completed_instant",
    "mor_schema_evolution_add_widen",
    "v9_upgraded_from_v8",
]


@pytest.mark.parametrize("name", WRITTEN_ON)
def test_java_reads_what_we_wrote_on(name: str, java: JavaJudge, golden_copy: GoldenTable) -> None:
    path = golden_copy(name)
    known = findings(java, path) if name in JAVA_DEFECTS else set()
    table = Table(str(path))
    before = table.read_arrow()
    updated, deleted, kept = before.slice(0, 2), before.slice(2, 1), before.slice(3)
    table.upsert(columns_of(updated))
    table.delete(columns_of(deleted))
    found = canonical_rows(table.read_arrow())
    assert values(found) == values(canonical_rows(pa.concat_tables([updated, kept])))
    for use_metadata in (True, False):
        assert not difference(java.read(path, metadata=use_metadata), found)
    assert findings(java, path) <= known


def findings(java: JavaJudge, path: Path) -> set[str]:
    """What is untrue about a table, whoever left it so."""
    return {finding for found in java.validate(path).values() for finding in found}


def columns_of(rows: pa.Table) -> pa.Table:
    """Rows as a user has them."""
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])


def values(rows: list[Row]) -> list[Row]:
    """Rows without what a write changes in each."""
    kept = ("_hoodie_record_key", "_hoodie_partition_path")
    return ordered(
        [
            {name: value for name, value in row.items() if name[:8] != "_hoodie_" or name in kept}
            for row in rows
        ]
    )
