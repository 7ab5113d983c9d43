"""Existing rows: what a reader sees now of the keys that a write has found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.matches import Matches
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows

Places = npt.NDArray[np.int64]

# The place of a row that is not there.
ABSENT = -1


@dataclass(frozen=True, slots=True, eq=False)
class ExistingRows:
    """The rows that pairs have met; `places` leads from a pair to its row, or is `ABSENT`."""

    rows: pa.Table
    places: Places


class ExistingReader:
    """Reads existing rows with some of their columns, merged with their slices' logs."""

    def __init__(self, state: Snapshot, columns: Sequence[str]) -> None:
        self._keys = key_columns(state.config)
        known = [name for name in columns if name in state.reader_schema().names]
        self._columns = tuple(known)
        names = tuple(dict.fromkeys((*self._keys.names, *known)))
        self._spec = read_spec(state, Query(columns=names), None)
        self._reader = SliceReader(state.storage, self._spec)

    def read(
        self, rows: KeyedRows, matches: Matches, pairs: Places, executor: Executor
    ) -> ExistingRows:
        """The rows that the given pairs of the matches stand for."""
        at = matches.at[pairs]
        mine = [np.flatnonzero(at == number) for number in np.unique(at).tolist()]
        keys = [
            rows.keys.take(pa.array(matches.rows[pairs[some]])).dictionary_encode() for some in mine
        ]
        asked = [
            (matches.slices[at[some[0]]], encoded.dictionary)
            for some, encoded in zip(mine, keys, strict=True)
        ]
        tables = [self._spec.output_schema.empty_table()]
        places, start = np.full(len(pairs), ABSENT), 0
        found = executor.map(lambda one: self._of_slice(*one), asked)
        for some, encoded, (table, places_of_keys) in zip(mine, keys, found, strict=True):
            met = places_of_keys[encoded.indices.to_numpy()]
            places[some] = np.where(met == ABSENT, ABSENT, met + start)
            tables.append(table)
            start += len(table)
        return ExistingRows(pa.concat_tables(tables).select(list(self._columns)), places)

    def _of_slice(self, slice_: FileSlice, keys: pa.Array) -> tuple[pa.Table, Places]:
        """The slice's rows with some distinct keys, and for each key the place of its row."""
        index = KeyIndex(keys)
        tables = [self._spec.output_schema.empty_table()]
        places, start = np.full(len(keys), ABSENT), 0
        for batch in self._reader.batches(slice_):
            at, found = index.find(self._keys.keys_of(batch, slice_.file_id))
            tables.append(pa.Table.from_batches([batch.take(pa.array(at))]))
            places[found] = start + np.arange(len(at))
            start += len(at)
        return pa.concat_tables(tables), places
