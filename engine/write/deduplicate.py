"""Deduplication: of rows that share one key all go but one, each out of its own file group.

A delete by keys would take all of them. Each file group that loses some is rewritten without them,
with logs, too: keys are looked up in base files, so that one which only a log deletes would be
found there, and come to life with the next update. Where the row that stays shares its file group
with others of its key, it is written there anew.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.repeated_keys import KeyCopies, KeySearch, key_copies
from lakewarden.engine.metadata.entries.changes import Located
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.write.files.spec import GroupWork
from lakewarden.engine.write.request import Incoming, Placement, WriteRequest

Places = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


def deduplicate(
    search: Callable[[Snapshot], KeySearch], partitions: Sequence[str] | None
) -> WriteRequest:
    """The write that leaves each key once; which rows stay is decided by what it builds upon."""
    return WriteRequest(
        operation=Operation.DELETE,
        incoming=lambda state: _incoming(search(state), partitions),
        finds_keys=False,
    )


def copies_of(
    search: KeySearch, partitions: Sequence[str] | None, columns: Sequence[str] = ()
) -> Iterator[KeyCopies]:
    """All copies of repeated keys, part by part."""
    for repeated in search.repeated(partitions):
        yield key_copies(search.state, repeated, columns, search.executor)


@dataclass(frozen=True, slots=True, eq=False)
class _Staying:
    """The rows of some copies that stay, with those that every file group loses."""

    copies: KeyCopies
    # The place of its first row among those of the write.
    first: int

    @property
    def rows(self) -> pa.Table:
        return self.copies.rows.filter(pa.array(self.copies.stays))

    @property
    def keys(self) -> pa.Array:
        copies = self.copies
        return copies.keys.take(pa.array(copies.key_at[copies.stays]))

    def of_slice(self, number: int) -> tuple[Places, Places, Places]:
        """Of one slice the keys that leave it, those written anew, and those left alone."""
        copies = self.copies
        rows = self.first + np.cumsum(copies.stays) - copies.stays
        here = copies.slice_at == number
        losing = np.unique(rows[here & ~copies.stays])
        staying = rows[here & copies.stays]
        return losing, np.intersect1d(staying, losing), np.setdiff1d(staying, losing)


def _incoming(search: KeySearch, partitions: Sequence[str] | None) -> Incoming:
    columns = search.state.schema().columns
    parts: list[_Staying] = []
    for copies in copies_of(search, partitions, columns.names):
        first = sum(int(one.copies.stays.sum()) for one in parts)
        parts.append(_Staying(copies, first))
    rows = pa.concat_tables([columns.empty_table(), *(one.rows.cast(columns) for one in parts)])
    keys = pa.concat_arrays([pa.array([], pa.string()), *(one.keys for one in parts)])
    return Incoming(rows, placement=_placement(parts, keys))


def _placement(parts: Sequence[_Staying], keys: pa.Array) -> Placement:
    losing: dict[FileSlice, list[tuple[Places, Places]]] = {}
    stays: list[Located] = []
    for part in parts:
        for number, slice_ in enumerate(part.copies.slices):
            leaving, anew, alone = part.of_slice(number)
            if len(leaving):
                losing.setdefault(slice_, []).append((leaving, anew))
            if len(alone):
                stays.append(Located(keys.take(pa.array(alone)), slice_.key))
    groups = tuple(
        GroupWork(
            slice_.key,
            slice_,
            _NONE,
            inserts=np.concatenate([anew for _, anew in losing[slice_]]),
            departures=np.concatenate([leaving for leaving, _ in losing[slice_]]),
        )
        for slice_ in sorted(losing, key=lambda one: one.key)
    )
    return Placement(keys, groups, tuple(stays))
