"""Slice keys: which of some wanted keys a file slice has in its base file or in its logs.

A key counts even if the logs delete it. Java looks keys up in base files: a key that comes back
while the base file still has it must return to the same file group, or Java finds it twice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.file_groups.closed_files import ClosedFile, ClosedFiles, LogKeys
from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.recorded_sizes import assert_whole
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.effective import effective_blocks
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.records import records
from lakewarden.engine.index.key_file import KeyColumns, KeyFile, opened
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import both, together

Places = npt.NDArray[np.int64]

# Marking places among all is far quicker than sorting them, unless they are but a few of very many.
_MARKED_FROM = 256

# Says which of the wanted keys a base file may hold, from what its footer tells.
Narrowing = Callable[[KeyFile, pa.Array], pa.Array]


def any_key(file: KeyFile, wanted: pa.Array) -> pa.Array:
    """No narrowing: the file may hold all of the keys."""
    return wanted


class WantedKeys:
    """Distinct keys that are looked for, hashed once for all files."""

    def __init__(self, keys: pa.Array, hashes: npt.NDArray[np.uint64] | None = None) -> None:
        self.keys = keys
        self._index = KeyIndex(keys, hashes=hashes)

    def __len__(self) -> int:
        return len(self.keys)

    def found(self, batches: Iterator[pa.Array | pa.ChunkedArray]) -> Places:
        """The places of those wanted keys that are in the batches, ascending."""
        return self.united(self._index.find(batch)[1] for batch in batches)

    def united(self, parts: Iterable[Places]) -> Places:
        """Places found here and there, ascending and without repetition."""
        places = np.concatenate([np.zeros(0, np.int64), *parts])
        if len(places) * _MARKED_FROM < len(self):
            return np.unique(places)
        is_found = np.zeros(len(self), np.bool_)
        is_found[places] = True
        return np.flatnonzero(is_found)


@dataclass(frozen=True, slots=True)
class Search:
    """Where wanted keys are looked for: in a slice, or in one of several parts of it.

    Parts divide the row groups of the base file among workers; the first has all the logs.
    """

    slice: FileSlice
    wanted: WantedKeys = field(repr=False)
    part: int = 0
    part_count: int = 1


class SliceKeys:
    """Looks for keys in the slices of one table."""

    def __init__(
        self,
        storage: Storage,
        columns: KeyColumns,
        narrowing: Narrowing,
        closed: ClosedFiles | None = None,
    ) -> None:
        self._storage = storage
        self._columns = columns
        self._narrowing = narrowing
        # Given where all logs of the slices are closed.
        self._closed = closed

    def find(self, search: Search) -> Places:
        """The places of the wanted keys that are there."""
        found = search.wanted.found
        if search.part:
            return found(self._base_keys(search))
        return search.wanted.united(
            both(
                self._storage,
                lambda: found(self._base_keys(search)),
                lambda: found(self._log_keys(search.slice)),
            )
        )

    def of_slice(self, slice_: FileSlice) -> Iterator[pa.Array | pa.ChunkedArray]:
        """All keys of a slice, those that its logs delete included."""
        base = slice_.base_file
        if base is not None:
            with opened(self._storage, slice_.path(base), self._columns) as file:
                yield from file.batches(range(file.metadata.num_row_groups))
        yield from self._log_keys(slice_)

    def _base_keys(self, search: Search) -> Iterator[pa.Array]:
        base, slice_ = search.slice.base_file, search.slice
        if base is None:
            return
        with opened(self._storage, slice_.path(base), self._columns) as file:
            possible = self._narrowing(file, search.wanted.keys)
            row_groups = file.row_groups(possible)
            yield from file.batches(row_groups[search.part :: search.part_count])

    def deleted_in(self, slice_: FileSlice) -> Iterator[pa.Array | pa.ChunkedArray]:
        """The keys that logs of a slice delete, be they back since or not."""
        yield from self._log_keys(slice_, (BlockKind.DELETE,))

    def _log_keys(
        self, slice_: FileSlice, kinds: Collection[BlockKind] = tuple(BlockKind)
    ) -> Iterator[pa.Array | pa.ChunkedArray]:
        reads = [partial(self._log, slice_.path(log), log) for log in slice_.log_files]
        logs = dict(
            zip(map(slice_.path, slice_.log_files), together(self._storage, reads), strict=True)
        )
        every = chain.from_iterable(log.blocks for log in logs.values())
        for block in effective_blocks(every, lambda _: True):
            if block.kind not in kinds:
                continue
            known = logs[block.path].of_block
            if block.offset not in known:
                known[block.offset] = self._block_keys(block)
            yield known[block.offset]

    def _block_keys(self, block: Block) -> pa.Array | pa.ChunkedArray:
        if block.kind is BlockKind.DELETE:
            return deletes(block).keys
        return self._columns.keys_of(records(block, self._columns.names), block.path)

    def _log(self, path: str, log: LogFile) -> LogKeys:
        identity = ClosedFile(path, log.size_bytes)
        kept = None if self._closed is None else self._closed.keys.get(identity)
        if kept is not None:
            return kept
        content = self._storage.read(path)
        assert_whole(path, log, len(content))
        found = LogKeys(read_blocks(content, path))
        for block in found.blocks:
            if block.kind is BlockKind.CORRUPT:
                raise block.corrupt(block.reason)
        if self._closed is not None and len(content) == log.size_bytes:
            self._closed.keys.keep(identity, found, len(content))
        return found
