"""Secondary indexes: which record keys have a value in a column.

Version 1 spreads entries by the whole key, version 2 by the value alone, so that a value lies in
one file group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.secondary_key import (
    HashInput,
    secondary_prefixes,
    split_secondary_keys,
)
from lakewarden.engine.metadata.encoding.records import Versions
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.partition import MetadataPartition

SECONDARY_COLUMN = "SecondaryIndexMetadata"


@dataclass(frozen=True, slots=True)
class SecondaryEntry:
    """A record key under its value's text; None is the null value."""

    value: str | None
    record_key: str


def locate_values(
    index: MetadataPartition, definition: IndexDefinition, values: Sequence[str | None]
) -> tuple[SecondaryEntry, ...]:
    """The entries with one of the given values."""
    prefixes = secondary_prefixes(pa.array(values, pa.string())).to_pylist()
    by_value = HashInput(definition.version) is HashInput.VALUE
    found = index.lookup_prefixes(prefixes, [SECONDARY_COLUMN], hashed_by_prefix=by_value)
    return _entries(found, definition.partition)


def locate_beginnings(
    index: MetadataPartition, definition: IndexDefinition, beginnings: Sequence[str]
) -> tuple[SecondaryEntry, ...]:
    """The entries of values that begin with one of the given texts; all file groups are asked."""
    prefixes = secondary_prefixes(pa.array(beginnings, pa.string())).to_pylist()
    # What stands behind a whole value stands behind no beginning.
    found = index.lookup_prefixes([one[:-1] for one in prefixes], [SECONDARY_COLUMN])
    return _entries(found, definition.partition)


def all_entries(
    index: MetadataPartition, definition: IndexDefinition
) -> tuple[SecondaryEntry, ...]:
    """Every entry of the index."""
    return _entries(index.all([SECONDARY_COLUMN]), definition.partition)


def _entries(versions: Versions, path: str) -> tuple[SecondaryEntry, ...]:
    newest = versions.newest()
    records = newest.values.column(SECONDARY_COLUMN).to_pylist()
    live = [record is None or not record["isDeleted"] for record in records]
    kept = newest.take(np.flatnonzero(live))
    values, keys = split_secondary_keys(kept.keys.cast(pa.string()), path)
    pairs = zip(values.to_pylist(), keys.to_pylist(), strict=True)
    entries = (SecondaryEntry(value, key) for value, key in pairs)
    return tuple(
        sorted(
            entries, key=lambda entry: (entry.value or "", entry.value is None, entry.record_key)
        )
    )
