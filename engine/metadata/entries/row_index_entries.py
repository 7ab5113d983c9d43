"""Entries of the indexes that are made from rows: filters, expressions and secondary indexes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.hashing import bloom_filter_key, expression_partition_key
from lakewarden.engine.formats.octets import large_binary
from lakewarden.engine.formats.secondary_key import HashInput, secondary_keys, secondary_prefixes
from lakewarden.engine.metadata.encoding.entries import Entries, joined
from lakewarden.engine.metadata.encoding.record_schema import (
    KEY_FILTER,
    SECONDARY_ENTRY,
    encode_values,
)
from lakewarden.engine.metadata.encoding.records import EMPTY_BINARY
from lakewarden.engine.metadata.entries.changes import (
    NewFile,
    StoredFilter,
    TableChange,
    ValueChange,
)
from lakewarden.engine.metadata.entries.statistics_entries import (
    column_stats_entries,
    partition_stats_entries,
)
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.partition import MetadataPartition
from lakewarden.engine.metadata.reading.secondary_index import SECONDARY_COLUMN

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
    known: Callable[[], MetadataPartition],
    *,
    is_early: bool,
) -> Entries:
    """The statistics of an expression in new files, and anew in the partitions they came to.

    They are kept as those of columns are, under the name of the column that the expression is of.
    """
    columns = definition.columns
    seen = replace(
        change, new_files=tuple(_as_statistics(one, definition) for one in change.new_files)
    )
    return joined(
        [
            column_stats_entries(seen, columns, is_early=is_early),
            partition_stats_entries(
                seen, columns, known, is_early=is_early, key_of=expression_partition_key
            ),
        ]
    )


def _as_statistics(file: NewFile, definition: IndexDefinition) -> NewFile:
    own = file.expressions.get(definition.partition)
    return replace(file, columns={} if own is None else {definition.columns[0]: own})


def secondary_entries(changes: Iterable[ValueChange], definition: IndexDefinition) -> Entries:
    """The entries of a secondary index; a pair that is put is not gone, whoever says so."""
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
