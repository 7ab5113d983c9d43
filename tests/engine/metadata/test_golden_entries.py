"""What we would have told the metadata tables of golden tables, against what Java told them."""

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import clean, commit, replace
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.timeline.instants.instant import Action, Instant
from tests.engine.metadata.java_entries import Record, new_file, of_entries, of_logs
from tests.golden_tables import GoldenTable

WRITTEN = [
    "cow_all_types",
    "cow_bloom_column_partition_stats",
    "cow_overwrite_and_delete_partition",
    "cow_partition_url_encoded",
    "cow_timestamp_ntz",
    "mor_all_types",
    "mor_bucket_simple",
    "mor_compaction_completed",
    "mor_deletes",
    "mor_nested_partitions",
    "mor_parquet_log_blocks",
    "mor_partial_updates",
    "mor_schema_evolution_add_widen",
    "v9_upgraded_from_v8",
]
CLEANED = ["cow_clean_deleted_partition", "mor_clean_keep_latest_commits", "mor_metadata_services"]
# Java's Parquet writer leaves the bounds of columns with a NaN out of footers, and Java then takes
# zero for both; our summaries leave such columns to be made from rows.
WITH_NAN = {"cow_all_types", "mor_all_types", "mor_parquet_log_blocks"}


@cache
def opened(path: Path) -> Snapshot:
    return load_snapshot(open_storage(Location(str(path))))


def ours(state: Snapshot, change: TableChange, partition: str) -> tuple[dict[str, Record], Any]:
    content = content_of(state.metadata, state.definitions, change)
    (entries,) = content.of(partition).values()
    return of_entries(entries)


def writes(path: Path) -> Iterator[tuple[Instant, TableChange]]:
    """The completed writes of a table whose new files are all still there, as changes."""
    state = opened(path)
    nothing = TableChange(instant="")
    columns = content_of(state.metadata, state.definitions, nothing).columns
    for instant in state.timeline.active.completed():
        codec = replace if instant.action is Action.REPLACE_COMMIT else commit
        metadata = codec.decode(state.timeline.active.read(instant), "commit")
        stats = [one for some in metadata.partition_to_write_stats.values() for one in some]
        paths = [one.path for one in stats if one.path is not None]
        if all((path / one).exists() for one in paths):
            files = tuple(new_file(path, one, columns) for one in paths)
            yield instant, TableChange(instant=instant.requested, new_files=files)


def logs_of(path: Path, partition: str, instant: Instant) -> tuple[dict[str, Record], set[str]]:
    return of_logs(path / ".hoodie" / "metadata" / partition, instant.requested)


@pytest.mark.parametrize("name", WRITTEN)
def test_files_are_told_as_java_tells_them(name: str, golden: GoldenTable) -> None:
    path, compared = golden(name), 0
    for instant, change in writes(path):
        java = logs_of(path, "files", instant)
        if any(java):
            assert ours(opened(path), change, "files") == java
            compared += 1
    assert compared


@pytest.mark.parametrize("name", WRITTEN)
def test_statistics_are_told_as_java_tells_them(name: str, golden: GoldenTable) -> None:
    path, compared = golden(name), 0
    for instant, change in writes(path):
        java, removed = logs_of(path, "column_stats", instant)
        if not java:
            continue
        reported, gone = ours(opened(path), change, "column_stats")
        assert gone == removed == set()
        assert reported.keys() <= java.keys()
        untold = {columns_of(java[key]) for key in java.keys() - reported.keys()}
        assert untold == ({"d"} if name in WITH_NAN and untold else set())
        for key, record in reported.items():
            assert plain(record) == plain(java[key])
        compared += 1
    assert compared


@pytest.mark.parametrize("name", CLEANED)
def test_a_clean_is_told_as_java_tells_it(name: str, golden: GoldenTable) -> None:
    path, compared = golden(name), 0
    state = opened(path)
    for instant in state.timeline.active.completed((Action.CLEAN,)):
        metadata = clean.decode(state.timeline.active.read(instant), "clean")
        cleaned = metadata.partition_metadata
        change = TableChange(
            instant=instant.requested,
            deleted_files={one: cleaned[one].success_delete_files for one in cleaned},
            deleted_partitions=tuple(one for one in cleaned if cleaned[one].is_partition_deleted),
        )
        for partition in ("files", "column_stats"):
            java = logs_of(path, partition, instant)
            if any(java):
                assert ours(state, change, partition) == java
                compared += 1
    assert compared


@pytest.mark.parametrize("name", ["mor_nested_partitions", "mor_compaction_completed"])
def test_partition_statistics_of_first_writes_are_told_as_java_tells_them(
    name: str, golden: GoldenTable
) -> None:
    path = golden(name)
    instant, change = next(writes(path))
    live: dict[str, tuple[str, ...]] = {}
    for file in change.new_files:
        live[file.partition] = (*live.get(file.partition, ()), file.name)
    reported = TableChange(instant=change.instant, new_files=change.new_files, live_files=live)
    assert ours(opened(path), reported, "partition_stats") == logs_of(
        path, "partition_stats", instant
    )


@pytest.mark.parametrize("name", ["mor_record_index_global", "cow_record_index_partitioned"])
def test_places_of_records_are_told_as_java_tells_them(name: str, golden: GoldenTable) -> None:
    path = golden(name)
    state = opened(path)
    instant, change = next(writes(path))
    located = []
    for file in change.new_files:
        keys = pq.read_table(path / file.partition / file.name, partitioning=None)[RECORD_KEY]
        home = FileGroupId(file.partition, file.name.split("_")[0])
        located.append(Located(keys.combine_chunks(), home))
    reported = TableChange(instant=change.instant, located=tuple(located))
    content = content_of(state.metadata, state.definitions, reported)
    java = logs_of(path, "record_index", instant)
    found: dict[str, Record] = {}
    for entries in content.of("record_index").values():
        records, removed = of_entries(entries)
        assert removed == java[1]
        found |= records
    assert found == java[0]


def columns_of(record: Record) -> str:
    return str(record["ColumnStatsMetadata"][1]["columnName"])


def plain(record: Record) -> Record:
    """A record that can be compared: NaN as a word, and fields that are null skipped."""
    name, statistics = record["ColumnStatsMetadata"]
    known = {key: value for key, value in statistics.items() if value is not None}
    for bound in ("minValue", "maxValue"):
        wrapper, content = known.get(bound, (None, {}))
        value = content.get("value")
        if isinstance(value, float) and math.isnan(value):
            known[bound] = (wrapper, {"value": "NaN"})
    return {**record, "ColumnStatsMetadata": (name, known)}
