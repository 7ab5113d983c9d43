"""Metadata records: raw key and value runs of a metadata file group, and the newest of each key.

A run holds what one base file or one log block says; later runs win over earlier ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.avro.decode import decode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.widening import nullable, widen

EMPTY_BINARY = pa.array([], type=pa.large_binary())
_NO_VALUE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Run:
    """Keys with their encoded values, or keys that were removed (then there are no values)."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray | None
    schema_text: str
    path: str


@dataclass(frozen=True, slots=True)
class Versions:
    """All that is known of some keys, oldest first, decoded as far as it was asked for."""

    keys: pa.LargeBinaryArray
    is_removed: np.ndarray
    values: pa.Table

    def newest(self) -> "Versions":
        """The last version of every key, without the keys that end up removed."""
        if len(self.keys) == 0:
            return self
        codes = self.keys.dictionary_encode().indices.to_numpy()
        last = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        # With repeated indices the last assignment stays, which is the newest version.
        last[codes] = np.arange(len(codes))
        kept = np.sort(last)
        return self.take(kept[~self.is_removed[kept]])

    def take(self, positions: np.ndarray) -> "Versions":
        indices = pa.array(positions)
        return Versions(
            self.keys.take(indices), self.is_removed[positions], self.values.take(indices)
        )


def decode_runs(runs: Sequence[Run], columns: Sequence[str]) -> Versions:
    """Decode runs, given oldest first, into one table of versions with the given columns."""
    rows = [_NO_VALUE] * len(runs)
    tables: list[pa.Table] = []
    decoded = 0
    for text, members in _by_schema(runs).items():
        # Log blocks are many and small, so all that share a schema are decoded together.
        tables.append(_decode(text, [runs[at] for at in members], columns))
        for at in members:
            rows[at] = np.arange(decoded, decoded + len(runs[at].keys))
            decoded += len(runs[at].keys)
    places = np.concatenate(
        [_NO_VALUE]
        + [
            np.full(len(run.keys), -1) if run.values is None else rows[at]
            for at, run in enumerate(runs)
        ]
    )
    is_removed = places < 0
    return Versions(
        pa.concat_arrays([EMPTY_BINARY, *(run.keys for run in runs)]),
        is_removed,
        _united(tables, columns).take(pa.array(places, mask=is_removed)),
    )


def _by_schema(runs: Sequence[Run]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, run in enumerate(runs):
        if run.values is not None:
            members.setdefault(run.schema_text, []).append(at)
    return members


def _decode(schema_text: str, runs: Sequence[Run], columns: Sequence[str]) -> pa.Table:
    values = pa.concat_arrays([EMPTY_BINARY, *(run.values for run in runs)])
    _, offsets, content = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    path = runs[0].path if len(runs) == 1 else f"{runs[0].path} and {len(runs) - 1} more"
    schema = parse_schema(schema_text, path)
    known = {field.name for field in schema.fields}
    # Releases before 1.1 lack some fields; they are null then.
    wanted = [name for name in columns if name in known]
    table = decode_records(content or b"", bounds[:-1], bounds[1:], schema, path, columns=wanted)
    missing = {name: pa.nulls(len(values)) for name in columns if name not in known}
    return pa.table({name: table.column(name) for name in wanted} | missing)


def _united(tables: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Tables of different releases as one; newer releases add fields."""
    if not tables:
        return pa.table({name: pa.nulls(0) for name in columns})
    if len(tables) == 1:
        return tables[0].combine_chunks()
    schemas = [
        pa.schema([pa.field(field.name, nullable(field.type)) for field in table.schema])
        for table in tables
    ]
    model = pa.unify_schemas(schemas, promote_options="permissive")
    parts = [
        [widen(table.column(field.name).combine_chunks(), field.type) for field in model]
        for table in tables
    ]
    return pa.concat_tables([pa.table(part, schema=model) for part in parts]).combine_chunks()


def text_keys(keys: pa.LargeBinaryArray) -> list[str]:
    """Keys as text; metadata keys are always UTF-8."""
    return [str(key) for key in pc.cast(keys, pa.large_string()).to_pylist()]
