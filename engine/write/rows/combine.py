"""Combining: one row per key among incoming rows, chosen as two writes would have chosen it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.read.merge.entries import NO_ROW, LogEntries, ordering_values
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.histories import Fates, Histories, fates
from lakewarden.engine.read.merge.key_index import hash_keys, repeated
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode


def combined(rows: KeyedRows, rules: MergeRules, *, by_partition: bool) -> KeyedRows:
    """The rows that are left when rows of one key have met one another, in the order given.

    A key is that of its partition, unless an index knows keys over all partitions. A delete stays
    before the row that came after it where the two together mean more than the row: it keeps
    what the table has of the key from that row.
    """
    suspects = _suspects(rows.keys)
    groups = _groups(rows.keys, rows.partitions, suspects, by_partition=by_partition)
    counts = np.bincount(groups)
    if not len(counts) or counts.max() == 1:
        return rows
    is_contested = counts[groups] > 1
    contested, groups = suspects[is_contested], groups[is_contested]
    met = rows.take(contested)
    order = np.argsort(groups, kind="stable")
    decided = fates(_histories(met, groups, order, rules))
    found = order[decided.winner]
    loses = np.ones(len(contested), dtype=bool)
    loses[found] = False
    loses[order[_deletes_before(decided, met.is_delete[found], rules)]] = False
    kept = np.delete(np.arange(len(rows)), contested[loses])
    taken = rows.take(kept)
    if rules.partial is PartialMode.NONE or not rows.rows.num_columns:
        return taken
    won = np.searchsorted(kept, contested[found])
    return _with_values_of_losers(taken, won, groups[found], met, groups, rules)


def _deletes_before(decided: Fates, is_delete: np.ndarray, rules: MergeRules) -> np.ndarray:
    """The places of the deletes that rows of their keys have come after, where they matter."""
    delete = np.where(decided.wiped >= 0, decided.wiped, decided.cut)
    if rules.partial is PartialMode.NONE:
        # A whole row takes nothing from an older one; it only may have to be newer.
        delete = decided.wiped if rules.mode is MergeMode.EVENT_TIME else delete[:0]
    return np.asarray(delete[(delete >= 0) & ~is_delete[: len(delete)]])


def _suspects(keys: pa.StringArray) -> np.ndarray:
    """The places, ascending, of all keys that are there twice, and perhaps of a few others."""
    hashes = hash_keys(keys)
    shared = repeated(hashes)
    if not len(shared):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(hashes, shared))


def _with_values_of_losers(
    taken: KeyedRows,
    won: np.ndarray,
    groups_of_won: np.ndarray,
    met: KeyedRows,
    groups: np.ndarray,
    rules: MergeRules,
) -> KeyedRows:
    """Winners whose values that don't count are filled from the rows they heartbeat."""
    folded = fold(_entries(met, groups, rules), rules)
    row_of_group = np.full(int(groups.max()) + 1, NO_ROW)
    row_of_group[folded.keys.cast(pa.int64()).to_numpy()] = folded.rows
    merged = row_of_group[groups_of_won]
    source = np.arange(len(taken))
    source[won] = np.where(merged == NO_ROW, won, merged + len(taken))
    table = pa.concat_tables([taken.rows, folded.records]).combine_chunks()
    return replace(taken, rows=table.take(pa.array(source)))


def _entries(rows: KeyedRows, groups: np.ndarray, rules: MergeRules) -> LogEntries:
    """The rows as the entries of one log, with their group's number for a key."""
    ordering = rules.ordering(rows.rows)
    return LogEntries(
        pa.array(groups).cast(pa.string()),
        np.arange(len(rows)),
        rows.is_delete,
        rows.is_unconditional,
        ordering_values(ordering, len(rows)),
        rows.rows,
        {},
        len(rows),
    )


def _groups(
    keys: pa.StringArray,
    partitions: pa.DictionaryArray,
    places: np.ndarray,
    *,
    by_partition: bool,
) -> np.ndarray:
    """A number for each of the places; those of one key share it."""
    encoded = keys.take(pa.array(places)).dictionary_encode()
    codes: np.ndarray = encoded.indices.to_numpy().astype(np.int64)
    paths = len(partitions.dictionary)
    if not by_partition or paths <= 1:
        return codes
    codes = codes * paths + partitions.indices.to_numpy()[places]
    return np.asarray(np.unique(codes, return_inverse=True)[1])


def _histories(
    rows: KeyedRows, groups: np.ndarray, order: np.ndarray, rules: MergeRules
) -> Histories:
    group = np.cumsum(np.diff(groups[order], prepend=groups[order][:1]) != 0)
    has_rows = bool(rows.rows.num_columns)
    rank = np.zeros(len(order), dtype=np.int64)
    if rules.mode is MergeMode.EVENT_TIME and has_rows:
        places = pa.array(order)
        fields = [pc.take(column, places) for column in rules.ordering(rows.rows)]
        rank = ordering_values(fields, len(order)).ranks()
    is_bare = np.full(len(order), not has_rows)
    return Histories(group, rows.is_delete[order], rows.is_unconditional[order], is_bare, rank)
