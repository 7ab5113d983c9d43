"""What a write tells its tasks: how files are made, and what goes into one file group.

Both travel to other processes, so they hold nothing but values.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.log.write import BLOCK_BYTES_MAX
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.table.change_logging import LoggingMode
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.merge_rules import MergeRules
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.transaction.state.markers import MarkerType
from lakewarden.engine.write.files.group_work import GroupWork

# Without a level, Arrow's gzip tries as hard as it can and takes fifty times as long.
_LEVELS = {"zstd": 1, "gzip": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How files are encoded."""

    codec: str = "zstd"
    level: int | None = None
    row_group_bytes: int = 120 << 20
    uses_dictionaries: bool = True
    bloom: BloomOptions = field(default_factory=BloomOptions)
    has_parquet_logs: bool = False
    log_block_bytes: int = BLOCK_BYTES_MAX

    @property
    def compression_level(self) -> int | None:
        """The level to ask for; None for codecs that have none."""
        if self.codec not in _LEVELS:
            return None
        return _LEVELS[self.codec] if self.level is None else self.level


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSpec:
    """What every task of one write has to know."""

    instant: str
    # A later attempt at the same instant names its files differently.
    attempt: int
    table_type: TableType
    schema: TableSchema
    # The Avro schema of records in files, with the meta columns.
    records_text: str
    rules: MergeRules
    # How the slices that are rewritten are read.
    read: ReadSpec
    files: FileOptions = FileOptions()
    # No writer looks for keys in base files, so that new ones may go to logs.
    logs_take_inserts: bool = False
    # New file groups begin with a base file even so.
    begins_with_bases: bool = False
    # Lookups in base files find keys that only logs delete: these must leave the base files, too.
    rewrites_bases: bool = False
    # Columns whose statistics the metadata table keeps.
    summarised: tuple[str, ...] = ()
    # Further indexes that are made from rows and footers.
    indexes: RowIndexes = field(default_factory=RowIndexes)
    # An index says where each key lives, so that it matters which keys a log brings back.
    tracks_keys: bool = False
    # That index has said where the keys of the write live, so that no file need say it again.
    index_tells_lives: bool = False
    # A worker that runs a task a second time names its files differently.
    task_attempt: int = 0
    # How files are announced; those who make files put the list, a task its direct marker.
    markers: frozenset[MarkerType] = frozenset({MarkerType.DIRECT})
    # The column that has the very text of the record key, if there is one.
    key_column: str | None = None
    # What is logged of changed rows, where the table captures changes.
    captures: LoggingMode | None = None
    # Threads that one task may keep busy; more than one where tasks are fewer than cores.
    threads: int = 1

    def write_token(self, task_number: int) -> str:
        return f"{task_number}-{self.task_attempt}-{self.attempt}"

    @property
    def key_footers(self) -> BloomOptions | None:
        """How footers tell of keys; those of files that store no keys do not."""
        return None if self.has_virtual_keys else self.files.bloom

    @property
    def has_virtual_keys(self) -> bool:
        return self.read.virtual_keys is not None

    @property
    def has_lists(self) -> bool:
        return MarkerType.TIMELINE_SERVER_BASED in self.markers


@dataclass(frozen=True, slots=True, eq=False)
class GroupTask:
    """The rows for one file group, taken out of those of the write.

    Departures are rows whose key leaves the group: only the key counts.
    """

    key: FileGroupId
    # None begins a new file group.
    slice: FileSlice | None
    number: int
    rows: KeyedRows
    is_insert: npt.NDArray[np.bool_]
    is_departure: npt.NDArray[np.bool_]

    @property
    def changes(self) -> KeyedRows:
        """Rows whose keys the group knows; departures among them delete unconditionally."""
        places = np.flatnonzero(~self.is_insert)
        taken = self.rows.take(places)
        leaving = self.is_departure[places]
        return KeyedRows(
            taken.rows,
            taken.keys,
            taken.partitions,
            taken.is_delete | leaving,
            taken.is_unconditional | leaving,
        )

    @property
    def inserts(self) -> KeyedRows:
        """New rows; a delete of a key that is not there is nothing to write."""
        return self.rows.take(np.flatnonzero(self.is_insert & ~self.rows.is_delete))


def group_task(work: GroupWork, rows: KeyedRows, number: int) -> GroupTask:
    """The task of one file group; `number` is its own within the write."""
    parts = (work.updates, work.inserts, work.departures)
    sizes = [len(part) for part in parts]
    kinds = np.repeat(np.arange(len(parts)), sizes)
    taken = rows.take(np.concatenate(parts))
    return GroupTask(work.key, work.slice, number, taken, kinds == 1, kinds == 2)
