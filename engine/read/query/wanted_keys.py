"""Wanted keys: the record keys that the rows of a filter can have.

A filter that holds the key columns to certain values is a lookup. The answer may name keys that no
row has, and is None as soon as a row might have another one.
"""

import pyarrow as pa

from lakewarden.engine.read.merge.equalities import Alternative, equalities
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import COMPLEX_GENERATORS
from lakewarden.engine.table.keygen.key_scheme import has_known_keys
from lakewarden.engine.table.keygen.keys import joined_keys, key_texts
from lakewarden.engine.table.schema import RECORD_KEY

# For more keys than these reading the files costs less than asking for each of them.
KEYS_MAX = 100_000


def wanted_keys(state: Snapshot, predicate: Predicate | None, schema: pa.Schema) -> pa.Array | None:
    """The distinct keys that rows of the filter can have; None where they are not known."""
    if predicate is None:
        return None
    parts = [_keys(state, one, schema) for one in equalities(predicate.expression)]
    if any(part is None for part in parts):
        return None
    return pa.concat_arrays([pa.array([], pa.string()), *parts]).unique()


def _keys(state: Snapshot, alternative: Alternative, schema: pa.Schema) -> pa.Array | None:
    config = state.config
    if RECORD_KEY in alternative:
        return _values(alternative[RECORD_KEY], pa.string())
    fields = config.key_fields
    # A renamed column has another name in the properties.
    if state.history.versions or not has_known_keys(config):
        return None
    if any(name not in alternative for name in fields):
        return None
    if any(name not in schema.names for name in fields):
        return None
    columns = [_values(alternative[name], schema.field(name).type) for name in fields]
    if any(column is None for column in columns):
        return None
    rows = _every_combination(dict(zip(fields, columns, strict=True)))
    if rows is None:
        return None
    spellings = {len(fields) > 1} | (
        {True} if config.key_generator in COMPLEX_GENERATORS else set()
    )
    parts = key_texts(rows, fields)
    texts = [joined_keys(parts, fields, names_fields=one) for one in sorted(spellings)]
    return pa.concat_arrays(texts)


def _values(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Values of a filter as a key column holds them, if there is no doubt how keys spell them."""
    kinds = (pa.types.is_string, pa.types.is_integer)
    if not any(is_kind(type_) and is_kind(values.type) for is_kind in kinds):
        return None
    if values.null_count or len(values) > KEYS_MAX:
        return None
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        # A number that the column has no room for; so it is in no row, which Arrow finds out.
        return None


def _every_combination(columns: dict[str, pa.Array]) -> pa.Table | None:
    """A row for each combination of values, unless these are too many."""
    rows = pa.table({"": pa.nulls(1)})
    for name, values in columns.items():
        if len(rows) * len(values) > KEYS_MAX:
            return None
        places = pa.array([at for at in range(len(rows)) for _ in range(len(values))], pa.int64())
        repeated = pa.chunked_array([values] * len(rows), values.type)
        rows = rows.take(places).append_column(name, repeated)
    return rows
