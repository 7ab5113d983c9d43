"""Repeated keys: those that a table has more than once, found in bounded memory.

Only hashes of all keys are held, and where even these are too many, a share of them at a time. The
few keys whose hashes repeat are then compared themselves.

Key copies: the rows that share one key, and which of them stays.

The newest one stays: by the ordering fields where the table orders its rows by them, else by its
commit, and where these are equal too the one in the last file group, and there the last one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.index.slice_keys import key_columns
from lakewarden.engine.read.merge.entries import ordering_values
from lakewarden.engine.read.merge.key_index import KeyIndex, hash_keys
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.merge_rules import MergeMode
from lakewarden.engine.table.schema import COMMIT_TIME

Hashes = npt.NDArray[np.uint64]

# 8 bytes each, and as much again while they are sorted.
HASHES_MAX = 1 << 24
_NO_HASHES = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedKeys:
    """Distinct keys that some slices have more than once among them."""

    keys: pa.StringArray
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Looks for repeated keys in the rows of a table that a reader sees."""

    state: Snapshot
    executor: Executor = field(repr=False)
    # A key is one in the whole table, and not only in its partition.
    is_global: bool
    hashes_max: int = HASHES_MAX

    def repeated(self, partitions: Sequence[str] | None = None) -> Iterator[RepeatedKeys]:
        """The repeated keys of some partitions, of all without any; no key comes twice."""
        slices = latest_file_slices(self.state, partitions)
        scopes: dict[str, list[FileSlice]] = {}
        for slice_ in slices:
            scopes.setdefault("" if self.is_global else slice_.partition, []).append(slice_)
        for scope in scopes.values():
            yield from self._repeated_among(tuple(scope))

    def _repeated_among(self, slices: tuple[FileSlice, ...]) -> Iterator[RepeatedKeys]:
        def parts() -> Iterator[Hashes]:
            return self.executor.map(self._hashes, slices)

        for suspects in shared_hashes(parts, self.hashes_max):
            found = self.executor.map(partial(self._keys, suspects), slices)
            keys = pa.concat_arrays([pa.array([], pa.string()), *found])
            counts = pc.value_counts(keys)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
            if len(repeated):
                yield RepeatedKeys(repeated.take(pc.sort_indices(repeated)), slices)

    def _hashes(self, slice_: FileSlice) -> Hashes:
        return np.concatenate([_NO_HASHES, *map(hash_keys, self._batches(slice_))])

    def _keys(self, hashes: Hashes, slice_: FileSlice) -> pa.StringArray:
        """The keys of a slice that have one of the hashes."""
        parts = (
            keys.filter(pa.array(np.isin(hash_keys(keys), hashes)))
            for keys in self._batches(slice_)
        )
        return pa.concat_arrays([pa.array([], pa.string()), *parts])

    def _batches(self, slice_: FileSlice) -> Iterator[pa.StringArray]:
        columns = key_columns(self.state.config)
        spec = read_spec(self.state, Query(columns=columns.names), None)
        for batch in SliceReader(self.state.storage, spec).batches(slice_):
            keys = columns.keys_of(batch, slice_.file_id)
            for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
                is_coded = pa.types.is_dictionary(chunk.type)
                yield (chunk.dictionary_decode() if is_coded else chunk).cast(pa.string())


def shared_hashes(
    parts: Callable[[], Iterator[Hashes]], hashes_max: int = HASHES_MAX
) -> Iterator[Hashes]:
    """The hashes that occur more than once in all parts together, in shares without overlap.

    A share whose distinct hashes are too many is halved; the other half has its turn later, for
    which all parts are gone through again.
    """
    waiting = [(1, 0)]
    while waiting:
        modulus, rest = waiting.pop()
        kept, twice = _NO_HASHES, _NO_HASHES
        for part in parts():
            own = part[part % np.uint64(modulus) == rest]
            kept, counts = np.unique(np.concatenate([kept, np.unique(own)]), return_counts=True)
            twice = np.union1d(twice, np.concatenate([kept[counts > 1], _repeated(own)]))
            while len(kept) > hashes_max:
                waiting.append((2 * modulus, rest + modulus))
                modulus *= 2
                kept, twice = (all_[all_ % np.uint64(modulus) == rest] for all_ in (kept, twice))
        if len(twice):
            yield twice


def _repeated(hashes: Hashes) -> Hashes:
    distinct, counts = np.unique(hashes, return_counts=True)
    return distinct[counts > 1]


Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

BY_ORDERING = "It has the newest ordering values."
BY_COMMIT = "It was committed last."
BY_FILE_GROUP = "It is in the last file group; the copies differ in nothing else."
BY_POSITION = "It is the last one in its file group; the copies differ in nothing else."


@dataclass(frozen=True, slots=True, eq=False)
class KeyCopies:
    """All rows with some repeated keys, those of one key side by side, the one that stays last."""

    keys: pa.StringArray
    # For each copy the place of its key, of its slice, and of its row in the slice.
    key_at: Places
    slice_at: Places
    row_at: Places
    stays: Mask
    # For each key why that copy stays.
    reasons: tuple[str, ...]
    # The columns that were asked for.
    rows: pa.Table
    slices: tuple[FileSlice, ...]

    def __len__(self) -> int:
        return len(self.key_at)


def key_copies(
    state: Snapshot, repeated: RepeatedKeys, columns: Sequence[str], executor: Executor
) -> KeyCopies:
    """The copies of repeated keys, with some columns of the table."""
    reader = _CopyReader(state, repeated.keys, columns)
    tables = list(executor.map(reader.read, repeated.slices))
    counts = [len(rows) for _, _, rows in tables]
    key_at = np.concatenate([at for at, _, _ in tables])
    row_at = np.concatenate([at for _, at, _ in tables])
    slice_at = np.repeat(np.arange(len(tables)), counts)
    rows = pa.concat_tables([rows for *_, rows in tables])
    ranks = _ranks(state, rows, repeated.slices, slice_at, row_at)
    order = np.lexsort((*reversed(ranks), key_at))
    key_at = key_at[order]
    stays = np.append(key_at[1:] != key_at[:-1], np.True_)
    last = np.flatnonzero(stays)
    reasons = [_reason([rank[order] for rank in ranks], at) for at in last.tolist()]
    return KeyCopies(
        repeated.keys,
        key_at,
        slice_at[order],
        row_at[order],
        stays,
        tuple(reasons),
        rows.take(pa.array(order)).select(list(columns)),
        repeated.slices,
    )


class _CopyReader:
    def __init__(self, state: Snapshot, keys: pa.Array, columns: Sequence[str]) -> None:
        self._index = KeyIndex(keys)
        self._keys = key_columns(state.config)
        decisive = (COMMIT_TIME, *state.config.merge.ordering_names)
        names = dict.fromkeys((*self._keys.names, *decisive, *columns))
        self._spec = read_spec(state, Query(columns=tuple(names)), None)
        self._reader = SliceReader(state.storage, self._spec)

    def read(self, slice_: FileSlice) -> tuple[Places, Places, pa.Table]:
        """For each copy in a slice the places of its key and of its row, and the row."""
        nothing = np.zeros(0, np.int64)
        keys, rows, start = [nothing], [nothing], 0
        tables = [self._spec.output_schema.empty_table()]
        for batch in self._reader.batches(slice_):
            at, found = self._index.find(self._keys.keys_of(batch, slice_.file_id))
            keys.append(found)
            rows.append(at + start)
            tables.append(pa.Table.from_batches([batch.take(pa.array(at))]))
            start += len(batch)
        return np.concatenate(keys), np.concatenate(rows), pa.concat_tables(tables)


def _ranks(
    state: Snapshot,
    rows: pa.Table,
    slices: Sequence[FileSlice],
    slice_at: Places,
    row_at: Places,
) -> tuple[Places, Places, Places, Places]:
    """By ordering values, commit, file group and row; the first that differs decides."""
    rules = state.config.merge
    by_ordering = np.zeros(len(rows), np.int64)
    if rules.mode is MergeMode.EVENT_TIME and rules.ordering_fields:
        by_ordering = ordering_values(rules.ordering(rows), len(rows)).ranks()
    commits = rows.column(COMMIT_TIME).combine_chunks()
    by_commit = np.asarray(pc.rank(commits, tiebreaker="dense"), np.int64)
    order = sorted(range(len(slices)), key=lambda at: (slices[at].file_id, slices[at].partition))
    place = np.zeros(len(slices), np.int64)
    place[order] = np.arange(len(slices))
    return by_ordering, by_commit, place[slice_at], row_at


def _reason(ranks: Sequence[Places], at: int) -> str:
    """What sets the copy that stays apart from the next best one, which stands before it."""
    words = (BY_ORDERING, BY_COMMIT, BY_FILE_GROUP, BY_POSITION)
    differs = (rank[at] != rank[at - 1] for rank in ranks)
    return next(word for word, is_so in zip(words, differs, strict=True) if is_so)
