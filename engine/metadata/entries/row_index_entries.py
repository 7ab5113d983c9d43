"""Entries of the indexes that are made from rows: filters, expressions and secondary indexes.

Entries of the `record_index` partition: where record keys live now, and which are gone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.hashing import bloom_filter_key, expression_partition_key
from lakewarden.engine.formats.octets import large_binary
from lakewarden.engine.formats.secondary_key import HashInput, secondary_keys, secondary_prefixes
from lakewarden.engine.metadata.encoding.records import (
    EMPTY_BINARY,
    KEY_FILTER,
    RECORD_LOCATION,
    SECONDARY_ENTRY,
    Entries,
    encode_values,
    joined,
)
from lakewarden.engine.metadata.entries.changes import (
    Located,
    NewFile,
    Removed,
    StoredFilter,
    TableChange,
    ValueChange,
)
from lakewarden.engine.metadata.entries.statistics import KnownFiles
from lakewarden.engine.metadata.entries.statistics_entries import (
    column_stats_entries,
    partition_stats_entries,
)
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.record_index import RECORD_COLUMN
from lakewarden.engine.metadata.reading.secondary_index import SECONDARY_COLUMN
from lakewarden.engine.metadata.reading.shards import record_shard, shard_of
from lakewarden.engine.metadata.reading.table import RECORD_INDEX

_UUID_FILE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9]{1,9})")
_UUID_ENCODING, _TEXT_ENCODING = 0, 1
_NO_NUMBER = -1


def record_entries(
    located: Iterable[Located],
    removed: Iterable[Removed],
    moment_ms: Callable[[str | None], int],
    *,
    is_partitioned: bool,
) -> Mapping[str, Entries]:
    """The entries of each shard; a global index has one for all partitions of the table.

    `moment_ms` tells when the write was that brought some keys.
    """

    def shard(partition: str) -> str:
        return record_shard(partition) if is_partitioned else shard_of(RECORD_INDEX)

    arrived: dict[str, list[Located]] = {}
    for item in located:
        arrived.setdefault(shard(item.home.partition), []).append(item)
    left: dict[str, list[Removed]] = {}
    for gone in removed:
        left.setdefault(shard(gone.partition), []).append(gone)
    return {
        name: _entries(arrived.get(name, []), left.get(name, []), moment_ms)
        for name in sorted(arrived.keys() | left.keys())
    }


def _entries(
    located: Sequence[Located],
    removed: Sequence[Removed],
    moment_ms: Callable[[str | None], int],
) -> Entries:
    """All keys of a file group have the same value, which is encoded once."""
    counts = [len(item.keys) for item in located]
    return Entries(
        _joined_keys([item.keys for item in located]),
        _values([item.home for item in located], [moment_ms(item.instant) for item in located]),
        np.repeat(np.arange(len(located)), counts),
        _joined_keys([item.keys for item in removed]),
    )


def _joined_keys(columns: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    return pa.concat_arrays([EMPTY_BINARY, *map(large_binary, columns)])


def _values(homes: Sequence[FileGroupId], moments_ms: Sequence[int]) -> pa.LargeBinaryArray:
    parts = [_file_id_parts(home.file_id) for home in homes]
    high, low, number, text, encoding = zip(*parts, strict=True) if parts else ((),) * 5
    places = pa.StructArray.from_arrays(
        [
            pa.array([home.partition for home in homes], pa.string()),
            pa.array(high, pa.int64()),
            pa.array(low, pa.int64()),
            pa.array(number, pa.int32()),
            pa.array(text, pa.string()),
            pa.array(moments_ms, pa.int64()),
            pa.array(encoding, pa.int32()),
            pa.nulls(len(homes), pa.int64()),
        ],
        names=[
            "partitionName",
            "fileIdHighBits",
            "fileIdLowBits",
            "fileIndex",
            "fileId",
            "instantTime",
            "fileIdEncoding",
            "position",
        ],
    )
    return encode_values(np.full(len(homes), RECORD_LOCATION), RECORD_COLUMN, places)


def _file_id_parts(file_id: str) -> tuple[int, int, int, str, int]:
    """High and low half of the UUID and the number behind it, or the text if it is another kind."""
    match = _UUID_FILE_ID.fullmatch(file_id)
    if match is None:
        return _NO_NUMBER, _NO_NUMBER, _NO_NUMBER, file_id, _TEXT_ENCODING
    octets = bytes.fromhex(match[1].replace("-", ""))
    high, low = (int.from_bytes(half, "big", signed=True) for half in (octets[:8], octets[8:]))
    return high, low, int(match[2]), "", _UUID_ENCODING


_NO_TEXTS = pa.array([], pa.string())


def filter_entries(
    change: TableChange, filter_of: Callable[[NewFile], StoredFilter | None]
) -> Entries:
    """The filters of new base files; those of files that are gone are removed."""
    found = {
        bloom_filter_key(file.partition, file.name): stored
        for file in change.new_files
        if (stored := filter_of(file)) is not None
    }
    gone = [
        bloom_filter_key(partition, name)
        for partition, names in change.deleted_files.items()
        for name in names
        if not name.startswith(".")
    ]
    content = pa.StructArray.from_arrays(
        [
            pa.array([one.type_code for one in found.values()], pa.string()),
            pa.array([change.instant] * len(found), pa.string()),
            pa.array([one.text.encode() for one in found.values()], pa.binary()),
            pa.array([False] * len(found), pa.bool_()),
        ],
        names=["type", "timestamp", "bloomFilter", "isDeleted"],
    )
    values = encode_values(np.full(len(found), KEY_FILTER), BLOOM_COLUMN, content)
    return Entries.of(list(found), values, gone)


def expression_statistics_entries(
    change: TableChange,
    definition: IndexDefinition,
    known: KnownFiles,
    *,
    is_early: bool,
) -> Entries:
    """The statistics of an expression in new files, and anew in the partitions they came to.

    They are kept as those of columns are, under the name of the column that the expression is of.
    """
    columns = definition.columns
    seen = of_expression(change, definition)
    return joined(
        [
            column_stats_entries(seen, columns, is_early=is_early),
            partition_stats_entries(
                seen, columns, known, is_early=is_early, key_of=expression_partition_key
            ),
        ]
    )


def of_expression(change: TableChange, definition: IndexDefinition) -> TableChange:
    """The change as it is seen by an expression: its statistics stand where those of columns do."""
    files = tuple(_as_statistics(one, definition) for one in change.new_files)
    return replace(change, new_files=files)


def _as_statistics(file: NewFile, definition: IndexDefinition) -> NewFile:
    own = file.expressions.get(definition.partition)
    return replace(file, columns={} if own is None else {definition.columns[0]: own})


def secondary_entries(changes: Iterable[ValueChange], definition: IndexDefinition) -> Entries:
    """The entries of a secondary index; a pair that is put is not gone."""
    own = [one for one in changes if one.partition == definition.partition]
    put = _together([one.values for one in own]), _together([one.keys for one in own])
    gone = _together([one.gone_values for one in own]), _together([one.gone_keys for one in own])
    by_value = HashInput(definition.version) is HashInput.VALUE
    return replace(
        secondary_index_entries([secondary_keys(*put)]),
        removed=large_binary(secondary_keys(*gone)),
        routes=(secondary_prefixes(put[0]), secondary_prefixes(gone[0])) if by_value else None,
    )


def secondary_index_entries(index_keys: Sequence[pa.Array]) -> Entries:
    """The entries of index keys, which all have the same value."""
    keys = pa.concat_arrays([EMPTY_BINARY, *map(large_binary, index_keys)])
    content = pa.StructArray.from_arrays([pa.array([False])], names=["isDeleted"])
    values = encode_values(np.array([SECONDARY_ENTRY]), SECONDARY_COLUMN, content)
    return Entries(keys, values, np.zeros(len(keys), np.int64), EMPTY_BINARY)


def _together(parts: Sequence[pa.Array]) -> pa.StringArray:
    return pa.concat_arrays([_NO_TEXTS, *parts])
