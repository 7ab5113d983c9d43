"""Slice keys: which of some wanted keys a file slice has in its base file or in its logs.

A key counts even if the logs delete it. Java looks keys up in base files: a key that comes back
while the base file still has it must return to the same file group, or Java finds it twice.

Key files: the record keys of a base file, read without its other columns.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.listing import assert_whole
from lakewarden.engine.file_groups.slices import ClosedFile, ClosedFiles, FileSlice, LogKeys
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import effective_blocks, read_blocks, records
from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.storage.side_by_side import both, together
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyScheme
from lakewarden.engine.table.keygen.virtual_keys import virtual_keys
from lakewarden.engine.table.schema import RECORD_KEY

# Rows read together; a batch of keys should stay in the processor's cache while it is looked up.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Where the files of a table have their keys: in the meta column, or in the key fields."""

    names: tuple[str, ...]
    scheme: KeyScheme | None = None

    @property
    def is_stored(self) -> bool:
        return self.scheme is None

    def keys_of(self, rows: pa.Table | pa.RecordBatch, path: str) -> pa.Array | pa.ChunkedArray:
        missing = [name for name in self.names if name not in rows.schema.names]
        if missing:
            raise corrupt(path, None, f"It has no column {missing[0]!r}, which holds record keys.")
        if self.scheme is None:
            return rows.column(RECORD_KEY)
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return self.scheme.keys_of_stored(table)


def key_columns(config: TableConfig) -> KeyColumns:
    """The columns that a table's keys are read from."""
    scheme = virtual_keys(config)
    return KeyColumns((RECORD_KEY,) if scheme is None else scheme.columns, scheme)


class KeyFile:
    """One base file, open for reading its keys; use `opened`."""

    def __init__(self, file: pq.ParquetFile, path: str, columns: KeyColumns) -> None:
        self._file = file
        self.path = path
        self._columns = columns

    @property
    def metadata(self) -> pq.FileMetaData:
        return self._file.metadata

    def batches(self, row_groups: Sequence[int]) -> Iterator[pa.Array | pa.ChunkedArray]:
        """The keys of some row groups, in file order."""
        if not row_groups:
            return
        stored = frozenset(self._file.schema_arrow.names)
        present = [name for name in self._columns.names if name in stored]
        for batch in self._file.iter_batches(BATCH_ROWS, row_groups, present, use_threads=False):
            yield self._columns.keys_of(batch, self.path)

    def row_groups(self, wanted: pa.Array) -> list[int]:
        """The row groups whose smallest and largest key leave room for a wanted key."""
        everything = range(self.metadata.num_row_groups)
        if not self._columns.is_stored:
            return list(everything)
        # Bounds may be cut inside a character, so they are compared by their bytes.
        octets = wanted.cast(pa.binary())
        return [number for number in everything if self._may_hold(number, octets)]

    def _may_hold(self, row_group: int, wanted: pa.Array) -> bool:
        bounds = self._bounds(row_group)
        if bounds is None:
            return True
        low, high = (pa.scalar(bound, pa.binary()) for bound in bounds)
        inside = pc.and_(pc.greater_equal(wanted, low), pc.less_equal(wanted, high))
        return bool(pc.any(inside).as_py())

    def _bounds(self, row_group: int) -> tuple[bytes, bytes] | None:
        group = self.metadata.row_group(row_group)
        for number in range(group.num_columns):
            chunk = group.column(number)
            if chunk.path_in_schema == RECORD_KEY:
                statistics = chunk.statistics
                if statistics is None or not statistics.has_min_max:
                    return None
                return _octets(statistics.min_raw), _octets(statistics.max_raw)
        return None


@contextmanager
def opened(storage: Storage, path: str, columns: KeyColumns) -> Iterator[KeyFile]:
    """A base file for reading its keys; whatever is wrong with it is `CorruptTable`."""
    try:
        with storage.open(path) as source:
            yield KeyFile(pq.ParquetFile(source, pre_buffer=True), path, columns)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise corrupt(path, None, f"It is no readable Parquet file: {reason}.") from None


def _octets(bound: bytes | str) -> bytes:
    return bound.encode() if isinstance(bound, str) else bound


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
