"""The file of index definitions: rewritten as a whole when one of them changes.

Whatever call a rewrite dies at, readers find the definitions from before it or from after it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.metadata.entries.expressions import IDENTITY
from lakewarden.engine.metadata.reading.definitions import (
    INFLIGHT,
    IndexDefinition,
    StoredDefinitions,
    backup_path,
    parsed_definition,
    stored_definitions,
)
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """What the file shall say about one partition."""

    partition: str
    record: Mapping[str, object]

    def of_version(self, version: str) -> "NewDefinition":
        """The same, whose entries have a format."""
        return NewDefinition(self.partition, {**self.record, "version": version})

    def parsed(self) -> IndexDefinition:
        """The index as it is read from the file, once it is written there."""
        return parsed_definition(self.partition, self.record, INFLIGHT)


def column_stats_definition(columns: Sequence[str], *, version: str = "V2") -> NewDefinition:
    """Statistics of these columns; since version 2 they have value types."""
    return _definition(COLUMN_STATS, function=COLUMN_STATS, columns=columns, version=version)


def record_index_definition(*, is_partitioned: bool) -> NewDefinition:
    options = {"isPartitioned": str(is_partitioned).lower()}
    return _definition(RECORD_INDEX, options=options, version="V1")


def secondary_index_definition(partition: str, column: str) -> NewDefinition:
    """A secondary index on one column, whose entries are spread by the value."""
    record = _definition(partition, function=IDENTITY, columns=[column], version="V2").record
    kind = SECONDARY_INDEX_PREFIX.rstrip("_")
    return NewDefinition(partition, {**record, "indexType": kind})


def expression_index_definition(
    partition: str, index_type: str, function: str, column: str, options: Mapping[str, str]
) -> NewDefinition:
    """An index of statistics or bloom filters (`index_type`) of a function of one column."""
    own = {"expr": function, **options}
    record = _definition(
        partition, function=function, columns=[column], options=own, version="V2"
    ).record
    return NewDefinition(partition, {**record, "indexType": index_type})


def define_indexes(storage: Storage, path: str, definitions: Sequence[NewDefinition]) -> None:
    """Add or replace definitions; what the file says about others stays as it is."""
    _store(storage, path, {one.partition: one.record for one in definitions})


def forget_indexes(storage: Storage, path: str, partitions: Collection[str]) -> None:
    """Take definitions out of the file, if there is one."""
    _store(storage, path, dict.fromkeys(partitions))


def mend_definitions(storage: Storage, path: str, stored: StoredDefinitions) -> None:
    """Give a file that a crash has cut short its former content back; under the table's lock."""
    if stored.is_torn:
        storage.put(path, _file_of(stored.records))
        storage.delete(backup_path(path))


def remove_definitions(storage: Storage, path: str) -> None:
    """Remove the file, and what an interrupted rewrite has left of it."""
    storage.delete(path)
    storage.delete(backup_path(path))


def _store(storage: Storage, path: str, changes: Mapping[str, Mapping[str, object] | None]) -> None:
    """Set definitions, or remove those that are changed to None.

    Steps of `definitions`: backup, replace, forget.
    """
    present = stored_definitions(storage, path).records
    after = {name: record for name, record in {**present, **changes}.items() if record is not None}
    if after == present:
        return
    storage.put(backup_path(path), _file_of(present))
    storage.put(path, _file_of(after))
    storage.delete(backup_path(path))


def _file_of(definitions: Mapping[str, Mapping[str, object]]) -> bytes:
    text = json.dumps({"indexDefinitions": definitions}, indent=2, separators=(",", " : "))
    return text.encode()


def _definition(
    partition: str,
    *,
    function: str = "",
    columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    version: str,
) -> NewDefinition:
    return NewDefinition(
        partition,
        {
            "indexName": partition,
            "indexType": partition,
            "indexFunction": function,
            "sourceFields": list(columns),
            "indexOptions": dict(options or {}),
            "version": version,
        },
    )
