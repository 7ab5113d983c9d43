"""Key files: the record keys of a base file, read without its other columns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.kernel.errors import corrupt
from lakewarden.engine.storage.port import Storage
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
