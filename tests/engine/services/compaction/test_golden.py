"""Compaction on tables by Java: their rows stay as they are, and Java's plans are carried out."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import load_config
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.schema import FILE_NAME
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.state.context import Context
from tests.golden_tables import GoldenTable

# All merge modes, all types, both kinds of logs, records of some columns, slices without a base
# file, evolved schemas, and log compactions.
TABLES = (
    "mor_all_types",
    "mor_bucket_simple",
    "mor_bucket_consistent_hashing",
    "mor_commit_time_ordering",
    "mor_delete_marker",
    "mor_deletes",
    "mor_event_time_two_fields",
    "mor_log_compaction_completed",
    "mor_nbcc",
    "mor_parquet_log_blocks",
    "mor_partial_updates",
    "mor_payload_partial_update",
    "mor_record_index_global",
    "mor_record_positions",
    "mor_schema_evolution_add_widen",
)
# What Java's compactions tell besides names, sizes and milliseconds.
REPORTED = (
    "num_writes",
    "num_deletes",
    "num_update_writes",
    "num_inserts",
    "num_updates",
    "total_log_records",
    "total_updated_records_compacted",
    "total_log_blocks",
    "total_log_files",
    "total_log_files_compacted",
    "total_log_size_compacted",
    "total_corrupt_log_block",
    "total_rollback_blocks",
    "log_version",
    "log_files",
    "base_file",
)


def context_of(folder: Path) -> Context:
    storage, ports, settings = open_storage(Location(str(folder))), Ports(), Settings()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)


def rows_of(folder: Path) -> list[str]:
    rows = Table(str(folder)).read_arrow().drop_columns([FILE_NAME])
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("name", TABLES)
def test_rows_by_java_stay_as_they_are(golden_copy: GoldenTable, name: str) -> None:
    folder = golden_copy(name)
    before = rows_of(folder)
    plan = schedule(context_of(folder), COMPACTION, PlanRequest())
    assert plan
    execute(context_of(folder), COMPACTION, plan.instant)
    assert rows_of(folder) == before
    assert not any(slice_.log_files for slice_ in Table(str(folder)).file_slices())


@pytest.mark.parametrize("name", ["mor_compaction_requested", "mor_compaction_inflight"])
def test_a_plan_by_java_is_carried_out(golden_copy: GoldenTable, name: str) -> None:
    folder = golden_copy(name)
    before = rows_of(folder)
    execute(context_of(folder), COMPACTION, pending_plan(folder))
    assert rows_of(folder) == before
    table = Table(str(folder))
    assert not table.timeline().pending()
    # Writes that came after the plan are in the logs of the new slice.
    logs = [log.name for slice_ in table.file_slices() for log in slice_.log_files]
    assert bool(logs) == (name == "mor_compaction_requested")


def test_the_commit_tells_what_java_tells(golden: GoldenTable, golden_copy: GoldenTable) -> None:
    folder = golden_copy("mor_compaction_requested")
    execute(context_of(folder), COMPACTION, pending_plan(folder))
    # Java has carried out the same plan for the same rows, only in another table.
    ours, theirs = stats_of(folder), stats_of(golden("mor_compaction_completed"))
    assert ours.keys() == theirs.keys()
    for partition, stat in ours.items():
        reported = {name: getattr(stat, name) for name in REPORTED}
        assert reported == {name: getattr(theirs[partition], name) for name in REPORTED}, partition


def test_a_table_with_an_index_that_is_not_maintained_is_refused(golden_copy: GoldenTable) -> None:
    folder = golden_copy("mor_secondary_index")
    listed = load_config(open_storage(Location(str(folder)))).metadata_partitions
    partitions = ",".join((*listed, "vector_index_by_city"))
    update_properties(
        open_storage(Location(str(folder))), {"hoodie.table.metadata.partitions": partitions}
    )
    with pytest.raises(InvalidRequest) as refusal:
        schedule(context_of(folder), COMPACTION, PlanRequest())
    assert refusal.value.code == "unsupported_index"


def pending_plan(folder: Path) -> str:
    (plan,) = Table(str(folder)).timeline().pending((Action.COMPACTION,))
    return plan.requested


def stats_of(folder: Path) -> dict[str, WriteStat]:
    active = Table(str(folder)).timeline()
    (compaction,) = active.completed((Action.COMMIT,))
    metadata = commit_payload.decode(active.read(compaction), "")
    return {name: one for name, (one,) in metadata.partition_to_write_stats.items()}
