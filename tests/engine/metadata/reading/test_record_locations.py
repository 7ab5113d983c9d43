"""Looking up many keys gives what looking them up one by one gives."""

import pyarrow as pa
import pytest

from lakewarden.engine.metadata.reading.record_index import all_locations, locate_many
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from tests.golden_tables import GoldenTable

TABLES = ("mor_record_index_global", "cow_record_index_partitioned", "v9_mor_by_111")


@pytest.mark.parametrize("name", TABLES)
def test_many_keys_are_found_where_each_of_them_is(name: str, golden: GoldenTable) -> None:
    shards = load_snapshot(open_storage(Location(str(golden(name))))).metadata.record_index()
    entries = all_locations(shards)
    keys = pa.array([*sorted({entry.key for entry in entries}), "unknown", ""], pa.string())
    found = locate_many(shards, keys, LocalExecutor(2))
    pairs = [
        (key, found.homes[home])
        for key, home in zip(found.keys.to_pylist(), found.at.tolist(), strict=True)
    ]
    assert sorted(pairs) == [(entry.key, entry.file_group_id) for entry in entries]


def test_no_keys_have_no_locations(golden: GoldenTable) -> None:
    table = load_snapshot(open_storage(Location(str(golden("mor_record_index_global")))))
    found = locate_many(table.metadata.record_index(), pa.array([], pa.string()), LocalExecutor(1))
    assert (len(found.keys), len(found.at), found.homes) == (0, 0, ())
