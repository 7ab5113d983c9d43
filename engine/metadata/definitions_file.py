"""The file of index definitions: rewritten as a whole when one of them changes."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.metadata.definitions import defined_indexes
from lakewarden.engine.metadata.table import COLUMN_STATS, RECORD_INDEX
from lakewarden.engine.storage.port import Storage


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """What the file shall say about one partition."""

    partition: str
    record: Mapping[str, object]


def column_stats_definition(columns: Sequence[str], *, version: str = "V2") -> NewDefinition:
    """Statistics of these columns; since version 2 they have value types."""
    return _definition(COLUMN_STATS, function=COLUMN_STATS, columns=columns, version=version)


def record_index_definition(*, is_partitioned: bool) -> NewDefinition:
    options = {"isPartitioned": str(is_partitioned).lower()}
    return _definition(RECORD_INDEX, options=options, version="V1")


def define_indexes(storage: Storage, path: str, definitions: Sequence[NewDefinition]) -> None:
    """Add or replace definitions; what the file says about others stays as it is."""
    payload = storage.read_if_present(path)
    present = defined_indexes(payload, path) if payload else {}
    after = {**present, **{one.partition: one.record for one in definitions}}
    if after != present:
        _store(storage, path, after)


def forget_indexes(storage: Storage, path: str, partitions: Collection[str]) -> None:
    """Take definitions out of the file, if there is one."""
    payload = storage.read_if_present(path)
    present = defined_indexes(payload, path) if payload else {}
    after = {name: record for name, record in present.items() if name not in partitions}
    if after != present:
        _store(storage, path, after)


def _store(storage: Storage, path: str, definitions: Mapping[str, Mapping[str, object]]) -> None:
    text = json.dumps({"indexDefinitions": definitions}, indent=2, separators=(",", " : "))
    storage.put(path, text.encode())


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
