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

EMPTY_BINARY = pa.array([], type=pa.large_binary())


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
    keys, removed, tables = [], [], []
    for run in runs:
        keys.append(run.keys)
        removed.append(np.full(len(run.keys), run.values is None))
        tables.append(_decode(run, columns) if run.values is not None else None)
    values = _concatenate(tables, [len(run.keys) for run in runs], columns)
    return Versions(
        pa.concat_arrays(keys) if keys else EMPTY_BINARY,
        np.concatenate(removed) if removed else np.zeros(0, dtype=bool),
        values,
    )


def _decode(run: Run, columns: Sequence[str]) -> pa.Table:
    assert run.values is not None
    _, offsets_buffer, content = run.values.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[run.values.offset :]
    offsets = offsets[: len(run.values) + 1]
    schema = parse_schema(run.schema_text, run.path)
    known = {field.name for field in schema.fields}
    # Releases before 1.1 lack some fields; they are null then.
    wanted = [name for name in columns if name in known]
    decoded = decode_records(
        content if content is not None else b"",
        offsets[:-1],
        offsets[1:],
        schema,
        run.path,
        columns=wanted,
    )
    return pa.table(
        {name: decoded.column(name) for name in wanted}
        | {name: pa.nulls(len(run.values)) for name in columns if name not in known}
    )


def _concatenate(
    tables: Sequence[pa.Table | None], lengths: Sequence[int], columns: Sequence[str]
) -> pa.Table:
    present = [table for table in tables if table is not None]
    if not present:
        return pa.table({name: pa.nulls(sum(lengths)) for name in columns})
    model = pa.unify_schemas([table.schema for table in present], promote_options="permissive")
    model = pa.schema([model.field(name).with_nullable(True) for name in columns])
    filled = [
        model.empty_table().cast(model)
        if length == 0
        else _nulls(model, length)
        if table is None
        else table.select(columns).cast(model)
        for table, length in zip(tables, lengths, strict=True)
    ]
    return pa.concat_tables(filled).combine_chunks()


def _nulls(model: pa.Schema, length: int) -> pa.Table:
    return pa.table([pa.nulls(length, field.type) for field in model], schema=model)


def text_keys(keys: pa.LargeBinaryArray) -> list[str]:
    """Keys as text; metadata keys are always UTF-8."""
    return [str(key) for key in pc.cast(keys, pa.large_string()).to_pylist()]
