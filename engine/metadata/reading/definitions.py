"""Index definitions: what `index.json` says about a table's indexes, beside their state."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.metadata.reading.table import (
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig

READY, INFLIGHT = "READY", "INFLIGHT"
DEFAULT_PATH = ".hoodie/.index_defs/index.json"


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index, or one of the metadata table's own partitions."""

    name: str
    partition: str
    index_type: str
    function: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    version: str
    state: str

    @property
    def is_partitioned(self) -> bool:
        return self.options.get("isPartitioned", "false").lower() == "true"


@dataclass(frozen=True, slots=True)
class StoredDefinitions:
    """The records in the file, by the partition that each is about."""

    records: Mapping[str, Mapping[str, object]]
    # Whether a crash has cut the file short; the records are those that it had before.
    is_torn: bool = False


def load_definitions(storage: Storage, config: TableConfig) -> tuple[IndexDefinition, ...]:
    """All metadata partitions of a table as indexes, with what is defined about them."""
    return definitions_of(config, stored_definitions(storage, definitions_path(config)).records)


def definitions_path(config: TableConfig) -> str:
    """Where a table has the file of its definitions, or would have it."""
    return config.index_definitions_path or DEFAULT_PATH


def backup_path(path: str) -> str:
    """Where the content of a file of definitions is while the file is being replaced."""
    return f"{path}.backup"


def definitions_of(
    config: TableConfig,
    records: Mapping[str, Mapping[str, object]],
    planned: Collection[str] = (),
) -> tuple[IndexDefinition, ...]:
    """The indexes of a table, of which the file of definitions has these records.

    `planned` are partitions that pending plans name, whether the properties list them or not.
    """
    states = dict.fromkeys((*config.metadata_partitions_inflight, *planned), INFLIGHT)
    states |= dict.fromkeys(config.metadata_partitions, READY)
    return tuple(
        parsed_definition(partition, records.get(partition, {}), states[partition])
        for partition in sorted(states)
    )


def keeps_partition_statistics(config: TableConfig) -> bool:
    """Whether some index has entries that are made from all files of a partition."""
    listed = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    if PARTITION_STATS in listed:
        return True
    return config.is_partitioned and any(one.startswith(EXPRESSION_INDEX_PREFIX) for one in listed)


def undefined(partition: str, state: str) -> IndexDefinition:
    """An index of which nothing is known but the partition that it is, or shall be."""
    return parsed_definition(partition, {}, state)


def stored_definitions(storage: Storage, path: str) -> StoredDefinitions:
    """What the file says, or did before a crash cut it short."""
    payload = storage.read_if_present(path)
    if payload is None:
        return StoredDefinitions({})
    try:
        return StoredDefinitions(defined_indexes(payload, path))
    except CorruptTable:
        before = storage.read_if_present(backup_path(path))
        if payload and before is None:
            raise
        records = defined_indexes(before, path) if before else {}
        return StoredDefinitions(records, is_torn=True)


def defined_indexes(payload: bytes, path: str) -> dict[str, Mapping[str, object]]:
    """The records in the file, by the partition that each is about."""
    try:
        entries = json.loads(payload)["indexDefinitions"]
        return {str(name): dict(entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise corrupt(path, None, f"It holds no index definitions: {error}.") from None


def parsed_definition(partition: str, entry: Mapping[str, object], state: str) -> IndexDefinition:
    """The index that a record of the file is about."""
    columns, options = entry.get("sourceFields"), entry.get("indexOptions")
    return IndexDefinition(
        name=index_name(partition),
        partition=partition,
        index_type=str(entry.get("indexType") or _index_type(partition)),
        function=str(entry.get("indexFunction") or ""),
        columns=tuple(map(str, columns)) if isinstance(columns, list) else (),
        options={str(key): str(value) for key, value in options.items()}
        if isinstance(options, Mapping)
        else {},
        version=str(entry.get("version") or "V1"),
        state=state,
    )


def index_name(partition: str) -> str:
    """The name by which users know the index that a partition is."""
    for prefix in (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX):
        if partition.startswith(prefix):
            return partition.removeprefix(prefix)
    return partition


def _index_type(partition: str) -> str:
    if partition.startswith(SECONDARY_INDEX_PREFIX):
        return SECONDARY_INDEX_PREFIX.rstrip("_")
    return RECORD_INDEX if partition == RECORD_INDEX else partition
