"""The scope of keys, and indexes that come and go: an index of all keys has each of them once.

Where one is built, keys stand for one row in the whole table from then on, and they go on to do so
when it is dropped.
"""

from collections.abc import Collection

from lakewarden.engine.index.identity import SCOPE_KEY, kept_kind, recorded_identity
from lakewarden.engine.index.kinds import KeyScope
from lakewarden.engine.metadata.reading.definitions import load_definitions
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.properties_file import update_properties


def record_scope(storage: Storage, config: TableConfig, wanted: WantedIndex) -> None:
    """Record that keys stand for one row in the whole table, before an index of them is there."""
    recorded = config.properties.get(SCOPE_KEY)
    if _is_of_all_keys(config, wanted) and recorded == KeyScope.PARTITION:
        update_properties(storage, {SCOPE_KEY: KeyScope.TABLE.value})


def keep_scope(storage: Storage, config: TableConfig, dropped: Collection[str]) -> None:
    """Record the scope of a record index before it is dropped."""
    if RECORD_INDEX not in dropped or recorded_identity(config) is not None:
        return
    definitions = load_definitions(storage, config)
    is_partitioned = any(one.is_partitioned for one in definitions if one.partition == RECORD_INDEX)
    if config.has_metadata(RECORD_INDEX) and kept_kind(config) is None and not is_partitioned:
        update_properties(storage, {SCOPE_KEY: KeyScope.TABLE.value})


def _is_of_all_keys(config: TableConfig, wanted: WantedIndex) -> bool:
    is_record_index = wanted.partition == RECORD_INDEX
    return config.is_partitioned and is_record_index and not wanted.is_partitioned
