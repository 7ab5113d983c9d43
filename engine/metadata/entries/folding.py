"""Folding: what a base file and the log blocks on top of it amount to, as entries."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.written_schema import written_schema
from lakewarden.engine.metadata.encoding.entries import Entries, last_of_each
from lakewarden.engine.metadata.encoding.record_schema import (
    RECORD_SCHEMA_TEXT,
    encode_values,
)
from lakewarden.engine.metadata.encoding.records import EMPTY_BINARY, Run, decode_runs
from lakewarden.engine.metadata.entries.files_entries import files_listing
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN
from lakewarden.engine.metadata.reading.files import FILES_COLUMN, merged_changes, merged_sizes
from lakewarden.engine.metadata.reading.record_index import RECORD_COLUMN
from lakewarden.engine.metadata.reading.secondary_index import SECONDARY_COLUMN
from lakewarden.engine.metadata.reading.table import FILES

# What records hold, each one of these; their type says no more than that.
_CONTENTS = (STATS_COLUMN, BLOOM_COLUMN, RECORD_COLUMN, SECONDARY_COLUMN)
_TYPE = "type"
# Fields that were added to records since release 1.0.
_ADDED_FIELDS = {
    STATS_COLUMN: {"valueType": pa.struct([("typeOrdinal", pa.int32())])},
    RECORD_COLUMN: {"position": pa.int64()},
}


def folded(partition: str, runs: Sequence[Run]) -> Entries:
    """The entries of one file group, sorted by key, from runs given oldest first."""
    if partition == FILES:
        merged = merged_sizes(decode_runs(runs, [FILES_COLUMN]))
        return files_listing({key: merged[key] for key in sorted(merged, key=str.encode)}, [])
    keys = pa.concat_arrays([EMPTY_BINARY, *(run.keys for run in runs)])
    values = pa.concat_arrays([EMPTY_BINARY, *map(_values, runs)])
    is_removed = np.concatenate(
        [np.zeros(0, np.bool_), *(np.full(len(run.keys), run.values is None) for run in runs)]
    )
    kept = last_of_each(keys)
    kept = kept[~is_removed[kept]]
    return Entries(keys.take(pa.array(kept)), values, kept, EMPTY_BINARY)


def folded_logs(partition: str, runs: Sequence[Run]) -> Entries:
    """What the logs of a file group amount to among themselves, sorted by key.

    The base file is to be met later, so keys that were removed are removed still, before those with
    values count.
    """
    if partition == FILES:
        changes, wiped = merged_changes(decode_runs(runs, [FILES_COLUMN]))
        listed = {key: changes[key] for key in sorted(changes, key=str.encode)}
        return files_listing(listed, sorted(wiped, key=str.encode))
    entries = folded(partition, runs)
    removed = pa.concat_arrays(
        [EMPTY_BINARY, *(run.keys for run in runs if run.values is None)]
    ).unique()
    return replace(
        entries, removed=removed.filter(pc.invert(pc.is_in(removed, value_set=entries.keys)))
    )


def _values(run: Run) -> pa.LargeBinaryArray:
    """The values of a run in the schema of today; nothing for each removed key."""
    if run.values is None:
        return pa.array([b""] * len(run.keys), pa.large_binary())
    if not len(run.keys) or written_schema(run.schema_text) == RECORD_SCHEMA_TEXT:
        return run.values
    found = decode_runs([run], [_TYPE, *_CONTENTS]).values
    # A file group has records of one content, of which an expression index has two types.
    column = next(name for name in _CONTENTS if found.column(name).null_count < len(found))
    content = found.column(column).combine_chunks()
    types = found.column(_TYPE).to_numpy()
    return encode_values(types, column, _with_added_fields(content, column))


def _with_added_fields(content: pa.StructArray, column: str) -> pa.StructArray:
    fields = {field.name: content.field(field.name) for field in content.type}
    for name, type_ in _ADDED_FIELDS.get(column, {}).items():
        fields.setdefault(name, pa.nulls(len(content), type_))
    mask = pc.is_null(content)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields), mask=mask)
