"""Repeated keys: those that a table has more than once, found in bounded memory.

Only hashes of all keys are held, and where even these are too many, a share of them at a time. The
few keys whose hashes repeat are then compared themselves.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.read.merge.key_hash import hash_keys
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot

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
