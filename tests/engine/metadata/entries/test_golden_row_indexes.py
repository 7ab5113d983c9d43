"""What we make of the files and rows of golden tables, against the entries that Java made."""

from pathlib import Path
from typing import Any

import pytest

from lakewarden.engine.formats.bloom import BloomOptions, parse_bloom
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.encoding.records import (
    RECORD_SCHEMA_TEXT,
    Run,
    decode_runs,
    text_keys,
)
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.metadata.entries.content import content_of
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes, row_indexes
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN
from lakewarden.engine.metadata.reading.secondary_index import SECONDARY_COLUMN
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.indexing.present import PresentTable
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.files.file_content import with_base_content
from tests.golden_tables import GoldenTable

FILTERED = [
    ("cow_bloom_column_partition_stats", "bloom_filters"),
    ("mor_bloom_column_partition_stats", "bloom_filters"),
]
EXPRESSION = "cow_expression_index"


def opened(path: Path) -> Snapshot:
    return load_snapshot(open_storage(Location(str(path))))


def indexes_of(state: Snapshot) -> RowIndexes:
    return row_indexes(state.definitions, state.schema().columns, Settings())


def java_entries(state: Snapshot, partition: str, column: str) -> dict[str, Any]:
    newest = state.metadata.partition(partition).all([column]).newest()
    values = newest.values.column(column).to_pylist()
    return dict(zip(text_keys(newest.keys), values, strict=True))


def present(state: Snapshot, options: BloomOptions | None = None) -> TableChange:
    """The table as it is, with all that the indexes of rows have to know."""
    indexes, reader = indexes_of(state), PresentTable(state, LocalExecutor(1))

    def remade(file: NewFile) -> NewFile:
        path = f"{file.partition}/{file.name}".lstrip("/")
        if options is None or file.name.startswith("."):
            return file
        return with_base_content(state.storage, path, file, indexes, options)

    return TableChange(
        instant="20260101000000000",
        new_files=tuple(map(remade, reader.files((), indexes))),
        live_files=reader.live_files(),
        valued=tuple(
            change
            for slice_ in reader.slices()
            for change in reader.values_of(slice_, indexes.secondary)
        ),
    )


def ours(state: Snapshot, change: TableChange, partition: str, column: str) -> dict[str, Any]:
    content = content_of(state.metadata, state.definitions, change)
    (entries,) = content.of(partition).values()
    run = Run(entries.keys, entries.own_values(), RECORD_SCHEMA_TEXT, "ours")
    values = decode_runs([run], [column]).values.column(column).to_pylist()
    return dict(zip(text_keys(entries.keys), values, strict=True))


@pytest.mark.parametrize(("name", "partition"), FILTERED)
def test_filters_of_keys_are_those_of_the_footers(
    name: str, partition: str, golden: GoldenTable
) -> None:
    state = opened(golden(name))
    made = ours(state, present(state), partition, BLOOM_COLUMN)
    java = java_entries(state, partition, BLOOM_COLUMN)
    assert made.keys() <= java.keys()
    for key, record in made.items():
        assert record["bloomFilter"] == java[key]["bloomFilter"]
        assert record["type"] == java[key]["type"]
    assert made


def test_filters_of_an_expression_hold_what_java_put_there(golden: GoldenTable) -> None:
    state = opened(golden(EXPRESSION))
    (index,) = (one for one in indexes_of(state).expressions if one.is_filter)
    java = java_entries(state, index.partition, BLOOM_COLUMN)
    (first, *_) = java.values()
    bloom = parse_bloom(first["bloomFilter"], first["type"], "filter")
    options = BloomOptions(entries=bloom.row_entries, entries_max=bloom.row_entries)
    made = ours(state, present(state, options), index.partition, BLOOM_COLUMN)
    assert made.keys() == java.keys()
    for key, record in made.items():
        mine = parse_bloom(record["bloomFilter"], first["type"], key)
        theirs = parse_bloom(java[key]["bloomFilter"], first["type"], key)
        assert (mine.bit_count, mine.hash_count) == (theirs.bit_count, theirs.hash_count)
        assert (mine.rows == theirs.rows).all()


def test_statistics_of_an_expression_are_javas(golden: GoldenTable) -> None:
    state = opened(golden(EXPRESSION))
    (index,) = (one for one in indexes_of(state).expressions if not one.is_filter)
    made = ours(state, present(state), index.partition, STATS_COLUMN)
    java = java_entries(state, index.partition, STATS_COLUMN)
    assert made.keys() == java.keys()
    wrappers = {
        key: {name: entry[name]["StringWrapper"] for name in ("minValue", "maxValue")}
        for key, entry in java.items()
    }
    for key, entry in made.items():
        assert {name: entry[name]["StringWrapper"] for name in wrappers[key]} == wrappers[key]
        assert {**entry, **wrappers[key]} == {**java[key], **wrappers[key]}


def test_values_and_keys_of_secondary_indexes_are_javas(golden: GoldenTable) -> None:
    state = opened(golden("mor_secondary_index"))
    change, java = present(state), {}
    for index in indexes_of(state).secondary:
        java = java_entries(state, index.partition, SECONDARY_COLUMN)
        made = ours(state, change, index.partition, SECONDARY_COLUMN)
        # Java keeps the entry of a deleted record in an index on a number.
        stale = 1 if index.partition == "secondary_index_idx_n" else 0
        assert made.items() <= java.items()
        assert len(java) - len(made) == stale
    assert java
