"""Moves: what becomes of a row whose key a global index has found in another partition.

As in Hudi, the row takes the key to its own partition if the index is set to do so and the row is
the newer one; the old partition forgets the key then. Otherwise the row is written to the partition
where the key is. A key that logs have deleted in another partition is not there any more.

Existing rows: what a reader sees now of the keys that a write has found.

Living keys: where a key is in several file groups of a partition, which of them still have it.

A log that deletes a key leaves it in the base file. A key that was deleted and inserted anew is in
two file groups then; written to both, its row would be there twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.incoming import Matches, are_elsewhere, no_matches
from lakewarden.engine.index.kinds import IndexChoice
from lakewarden.engine.index.slice_keys import key_columns
from lakewarden.engine.read.merge.entries import Records, log_entries, ordering_values
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode

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


def without_dead(state: Snapshot, rows: KeyedRows, matches: Matches, executor: Executor) -> Matches:
    """The matches without file groups whose logs have deleted the key, if another one has it.

    Of several that have deleted it one is kept, so that the key comes back to where it was.
    """
    if not (matches.rows[1:] == matches.rows[:-1]).any():
        return matches
    places = _places(matches)
    _, place_of, counts = np.unique(places, return_inverse=True, return_counts=True)
    has_logs = np.array([bool(slice_.log_files) for slice_ in matches.slices], np.bool_)
    asked = np.flatnonzero((counts[place_of] > 1) & has_logs[matches.at])
    if not len(asked):
        return matches
    lives = np.ones(len(matches), np.bool_)
    lives[asked] = ExistingReader(state, ()).read(rows, matches, asked, executor).places != ABSENT
    is_known = np.zeros(len(counts), np.bool_)
    is_known[place_of[lives]] = True
    dead = np.flatnonzero(~lives & ~is_known[place_of])
    _, firsts = np.unique(place_of[dead], return_index=True)
    lives[dead[firsts]] = True
    return matches.only(lives)


def _places(matches: Matches) -> npt.NDArray[np.int64]:
    """For each pair a number that stands for its row and its slice's partition."""
    partitions = [slice_.partition for slice_ in matches.slices]
    numbers = {partition: number for number, partition in enumerate(dict.fromkeys(partitions))}
    number_of = np.array([numbers[partition] for partition in partitions], np.int64)
    return matches.rows * len(numbers) + number_of[matches.at]


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Rows in the partitions that they are written to; `departures` are pairs of a row and the
    slice that its key leaves."""

    rows: KeyedRows
    matches: Matches
    departures: Matches


def moved(
    state: Snapshot, rows: KeyedRows, matches: Matches, index: IndexChoice, executor: Executor
) -> Moves:
    """Decide about the rows whose keys are in another partition."""
    if not index.is_global:
        return Moves(rows, matches, no_matches())
    elsewhere = are_elsewhere(rows, matches)
    if not elsewhere.any():
        return Moves(rows, matches, no_matches())
    columns = _columns(state.config.merge, rows, moves=index.moves)
    asked = _asked(matches, elsewhere, reads_all=bool(columns), is_sure=index.kind.is_record_index)
    existing = ExistingReader(state, columns).read(rows, matches, asked, executor)
    lives = np.ones(len(matches), np.bool_)
    lives[asked] = existing.places != ABSENT
    may_go = elsewhere & lives & ~rows.is_delete[matches.rows] & index.moves
    beaten = _heartbeats(state.config.merge, rows, matches, asked, existing)
    goes = _all_of_row(may_go, beaten, matches.rows, len(rows))
    stays = elsewhere & lives & ~goes
    has_home_elsewhere = np.zeros(len(rows), np.bool_)
    has_home_elsewhere[matches.rows[stays]] = True
    # A dead key draws its row back to its old group, unless the key lives somewhere else.
    kept = ~elsewhere & (lives | ~has_home_elsewhere[matches.rows])
    settled = _at_home(rows, matches, stays)
    if state.config.merge.partial is not PartialMode.NONE:
        settled = _filled(state.config.merge, settled, matches, asked, existing, goes)
    return Moves(settled, matches.only(kept | stays), matches.only(goes))


def _asked(matches: Matches, elsewhere: Mask, *, reads_all: bool, is_sure: bool) -> Places:
    """The pairs whose existing rows must be looked at.

    Whether a key lives in the row's own partition matters only for rows with another claim. Only
    logs make keys die in a slice, and a record index has forgotten them then.
    """
    is_open = np.isin(matches.rows, matches.rows[elsewhere])
    if not reads_all:
        has_logs = np.array([bool(slice_.log_files) for slice_ in matches.slices], np.bool_)
        is_open &= has_logs[matches.at] & (not is_sure)
    return np.flatnonzero(is_open)


def _columns(rules: MergeRules, rows: KeyedRows, *, moves: bool) -> tuple[str, ...]:
    """The columns of existing rows that decide about moves."""
    if not moves:
        return ()
    if rules.partial is not PartialMode.NONE:
        return tuple(rows.rows.column_names)
    return rules.ordering_names if rules.mode is MergeMode.EVENT_TIME else ()


def _heartbeats(
    rules: MergeRules, rows: KeyedRows, matches: Matches, asked: Places, existing: ExistingRows
) -> Mask:
    """For each pair whether the row wins over the existing row."""
    wins = np.ones(len(matches), np.bool_)
    are_there = set(rules.ordering_names) <= set(existing.rows.column_names)
    met = np.flatnonzero(existing.places != ABSENT)
    if rules.mode is MergeMode.COMMIT_TIME or not are_there or not rows.rows.num_columns:
        return wins
    pairs = asked[met]
    mine = [column.take(pa.array(matches.rows[pairs])) for column in rules.ordering(rows.rows)]
    theirs = [
        column.take(pa.array(existing.places[met])).cast(new.type)
        for column, new in zip(rules.ordering(existing.rows), mine, strict=True)
    ]
    new, old = ordering_values(mine, len(met)), ordering_values(theirs, len(met))
    wins[pairs] = new.are_at_least(old)
    return wins


def _all_of_row(may_go: Mask, wins: Mask, row_of: Places, row_count: int) -> Mask:
    """The pairs that may go, of rows that win at all of these: a row moves wholly or not."""
    holds = np.zeros(row_count, np.bool_)
    holds[row_of[may_go & ~wins]] = True
    return may_go & ~holds[row_of]


def _at_home(rows: KeyedRows, matches: Matches, stays: Mask) -> KeyedRows:
    """The rows, those that stay with their keys in the partitions of these."""
    if not stays.any():
        return rows
    paths = pa.array([slice_.partition for slice_ in matches.slices], pa.string())
    homes = paths.take(pa.array(matches.at[stays]))
    own = rows.partitions.dictionary_decode().cast(pa.string())
    source = np.arange(len(rows))
    # Pairs are in the order of slices; of several homes the first one counts.
    source[matches.rows[stays][::-1]] = len(rows) + np.arange(len(homes))[::-1]
    partitions = pa.concat_arrays([own, homes]).take(pa.array(source))
    return replace(rows, partitions=partitions.dictionary_encode())


def _filled(
    rules: MergeRules,
    rows: KeyedRows,
    matches: Matches,
    asked: Places,
    existing: ExistingRows,
    goes: Mask,
) -> KeyedRows:
    """The rows, those that move with the values of the old row where their own don't count."""
    met = np.flatnonzero((existing.places != ABSENT) & goes[asked])
    if not len(met):
        return rows
    movers, firsts = np.unique(matches.rows[asked[met]], return_index=True)
    schema = rows.rows.schema
    old = _as_incoming(existing.rows.take(pa.array(existing.places[met[firsts]])), schema)
    new = rows.rows.take(pa.array(movers))
    numbers = pa.array(np.arange(len(movers))).cast(pa.string())
    folded = fold(
        log_entries([Records(old, keys=numbers), Records(new, keys=numbers)], schema, rules), rules
    )
    source = np.arange(len(rows))
    source[movers[folded.keys.cast(pa.int64()).to_numpy()]] = len(rows) + folded.rows
    merged = pa.concat_tables([rows.rows, folded.records]).take(pa.array(source))
    return replace(rows, rows=merged)


def _as_incoming(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Existing rows with the columns and types of incoming ones."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
