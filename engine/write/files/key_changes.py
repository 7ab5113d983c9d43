"""Row changes: what a log did to the keys and to the indexed values of its file group.

An update in a log may bring back a key that an earlier log deleted, and an update or a delete may
come too late to count. Only the rows that readers see before and after tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.deletes import Deletes, deletes
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.write import BlockOrigin, delete_block
from lakewarden.engine.metadata.entries.changes import ValueChange
from lakewarden.engine.metadata.entries.row_indexes import SecondaryIndex, value_changes
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.read.merge.slice_reader import KeyRows, SliceReader
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.files.log_files import LogDeletes
from lakewarden.engine.write.files.spec import WriteSpec

_FEW_KEYS = 64


@dataclass(frozen=True, slots=True, eq=False)
class KeyChanges:
    """Keys that came to live in a file group, keys that it lost, and what became of values."""

    arrived: pa.StringArray
    left: pa.StringArray
    valued: tuple[ValueChange, ...] = ()


def key_changes(
    storage: Storage,
    spec: WriteSpec,
    slice_: FileSlice,
    keys: pa.StringArray,
    records: pa.Table,
    deleted: LogDeletes,
) -> KeyChanges:
    """What a new log on top of a slice does to some keys; the log's content is given."""
    distinct = keys.unique()
    columns = dict.fromkeys((RECORD_KEY, *spec.indexes.value_columns))
    # For few keys it pays to look where they are before anything else is read.
    few = distinct if len(distinct) <= _FEW_KEYS else None
    reader = SliceReader(storage, replace(spec.read, columns=tuple(columns), keys=few))
    said = [*_as_read(deleted.before, spec), records, *_as_read(deleted.after, spec)]
    before, after = reader.versions(slice_, KeyIndex(distinct), said)
    lived, lives = (_living(one, len(distinct)) for one in (before, after))
    return KeyChanges(
        distinct.filter(pa.array(lives & ~lived)),
        distinct.filter(pa.array(lived & ~lives)),
        value_changes(spec.indexes.secondary, before.rows, after.rows),
    )


def _as_read(deleted: Deletes, spec: WriteSpec) -> Iterator[Deletes]:
    """Deletes as readers find them: on disk an ordering value of 0 is none."""
    if len(deleted):
        content = delete_block(deleted, BlockOrigin(spec.instant))
        yield from map(deletes, read_blocks(content, "a new log"))


def _living(version: KeyRows, count: int) -> np.ndarray:
    """Which of the keys have a row."""
    living = np.zeros(count, dtype=bool)
    living[version.places] = True
    return living


class ValueWatch:
    """Gathers the indexed values of rows on their way into a new base file, before and after."""

    def __init__(self, indexes: tuple[SecondaryIndex, ...]) -> None:
        self._indexes = indexes
        self._columns = [RECORD_KEY, *dict.fromkeys(one.column for one in indexes)]
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []

    def before(self, rows: pa.Table) -> None:
        self._before.append(written_out(rows.select(self._columns)))

    def after(self, rows: pa.Table) -> None:
        self._after.append(written_out(rows.select(self._columns)))

    def changes(self) -> tuple[ValueChange, ...]:
        """What the indexes have to learn; complete after the last row."""
        return value_changes(self._indexes, together(self._before), together(self._after))


def written_out(rows: pa.Table) -> pa.Table:
    """Rows without dictionaries, which differ from batch to batch."""
    columns = [
        one.cast(one.type.value_type) if pa.types.is_dictionary(one.type) else one
        for one in rows.columns
    ]
    return pa.table(columns, names=rows.column_names)


def together(parts: list[pa.Table]) -> pa.Table | None:
    """Parts as one table, if there are any."""
    return pa.concat_tables(parts) if parts else None
