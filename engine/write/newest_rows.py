"""Newest rows: a source of changes with one row for each row of the table, by ordering values."""

import numpy as np
import pyarrow as pa

from lakewarden.engine.read.merge.ordering import ordering_values
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.write.change_set import repeated_keys
from lakewarden.engine.write.rows.places import Places, places_of
from lakewarden.engine.write.rows.prepare import fitted


def newest_of_each(
    source: pa.Table, state: Snapshot, *, by_partition: bool
) -> tuple[pa.Table, Places]:
    """The newest source row of each key, and their places; refused where none is the newest."""
    places = places_of(source, state)
    is_repeated = places.are_repeated(by_partition=by_partition)
    if not is_repeated.any():
        return source, places
    rules = state.config.merge
    if not rules.ordering_fields or not set(rules.ordering_names) <= set(source.column_names):
        raise repeated_keys(places.only(is_repeated), "The rows")
    columns = pa.schema([state.schema().columns.field(name) for name in rules.ordering_names])
    ranks = ordering_values(rules.ordering(fitted(source, columns)), len(source)).ranks()
    names = places.names(by_partition=by_partition)
    codes = names.dictionary_encode().indices.to_numpy()
    newest = np.full(len(source), -1)
    np.maximum.at(newest, codes, ranks)
    is_newest = ranks == newest[codes]
    kept = places.only(is_newest)
    still = kept.are_repeated(by_partition=by_partition)
    if still.any():
        raise repeated_keys(kept.only(still), "The rows")
    return source.filter(pa.array(is_newest)), kept
