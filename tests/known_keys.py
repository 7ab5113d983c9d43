"""What a cache of keys says, compared with what the record index of a table says."""

from collections.abc import Iterable

import pyarrow as pa

from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.metadata.reading.record_index import (
    RecordLocation,
    all_locations,
    locate_many,
)
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import load_snapshot
from lakewarden.engine.storage.port import Storage

Known = tuple[RecordLocation, ...]


def said_of_keys(storage: Storage, cache: KeyCache, keys: Iterable[str]) -> tuple[Known, Known]:
    """What the index has, and what the cache says of these keys and some more; none without one."""
    state = load_snapshot(storage)
    if not state.config.has_metadata(RECORD_INDEX):
        return (), ()
    shards = state.metadata.record_index()
    groups = [group for shard in shards for group in shard.file_groups]
    cache.prepare(groups, LocalExecutor(1))
    entries = all_locations(shards)
    asked = {entry.key for entry in entries} | set(keys)
    found = locate_many(shards, pa.array(sorted(asked), pa.string()), LocalExecutor(1), cache)
    named = zip(found.keys.to_pylist(), found.at.tolist(), strict=True)
    known = [RecordLocation(key, found.homes[at]) for key, at in named]
    return entries, tuple(sorted(known, key=lambda one: (one.key, one.file_group_id)))
