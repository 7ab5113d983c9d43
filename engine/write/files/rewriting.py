"""Rewriting: the rows of a file group after a write, streamed from its slice and merged.

Rows that stay keep their commit time and sequence number. Memory holds a few batches, and the rows
of the write.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.metadata.entries.changes import ValueChange
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.entries import LogEntries
from lakewarden.engine.read.merge.fold import Folded, fold
from lakewarden.engine.read.merge.merge import Merger, Tally
from lakewarden.engine.read.merge.ordering import ordering_values
from lakewarden.engine.read.merge.row_changes import RowChanges
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.ahead import ahead
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.files.change_log import RowCapture
from lakewarden.engine.write.files.key_changes import ValueWatch
from lakewarden.engine.write.files.key_footers import REBUILT_UP_TO, KeptFilter, KeyGatherer
from lakewarden.engine.write.files.meta_columns import (
    OWN_COLUMNS,
    with_file_columns,
    with_own_columns,
)
from lakewarden.engine.write.files.spec import GroupTask, WriteSpec


class Rewriting:
    """One slice on its way into a new base file."""

    def __init__(self, storage: Storage, spec: WriteSpec, task: GroupTask, file_name: str) -> None:
        assert task.slice is not None
        self._storage = storage
        self._spec = spec
        self._task = task
        self._slice = task.slice
        self._file_name = file_name
        fields = [pa.field(name, pa.string()) for name in OWN_COLUMNS]
        stored = [field for field in spec.schema.columns if field.name != spec.key_column]
        self._schema = pa.schema([*fields, *stored])
        self._values = ValueWatch(spec.indexes.secondary) if spec.indexes.secondary else None
        self._capture = RowCapture(self._schema) if spec.captures is not None else None
        self._watches = [one for one in (self._values, self._capture) if one is not None]
        self._merger = Merger(self._folded(task.changes), self if self._watches else None)
        self._inserts = self._with_own(task.inserts, first=int((~task.is_insert).sum()))
        self._arrived: list[pa.Array] = []
        self.keys = KeyGatherer(spec.key_footers)

    @property
    def tally(self) -> Tally:
        tally = self._merger.tally
        return replace(tally, inserts=tally.inserts + len(self._inserts))

    @property
    def arrived(self) -> pa.Array:
        """Keys that the slice did not have; complete after the last part."""
        return pa.concat_arrays([pa.array([], pa.string()), *self._arrived])

    @property
    def left(self) -> pa.Array:
        """Keys that the slice has lost; complete after the last part."""
        return self._merger.removed_keys

    @property
    def valued(self) -> tuple[ValueChange, ...]:
        """What secondary indexes have to learn; complete after the last part."""
        return () if self._values is None else self._values.changes()

    def captured(self) -> RowChanges | None:
        """What becomes of rows, where the table captures it; complete after the last part."""
        return None if self._capture is None else self._capture.changes(self._spec)

    def before(self, rows: pa.Table) -> None:
        """Rows of the slice whose keys the write knows."""
        for watch in self._watches:
            watch.before(rows)

    def after(self, rows: pa.Table) -> None:
        """What becomes of them, and rows that are new."""
        for watch in self._watches:
            watch.after(rows)

    def parts(self) -> Iterator[pa.Table]:
        """All rows of the new file; the next batch is read while one is being written."""
        merged = self._merged()
        return merged if self._spec.threads == 1 else ahead(merged)

    def _merged(self) -> Iterator[pa.Table]:
        batches = self._batches()
        for number, batch in enumerate(batches if self._spec.threads == 1 else ahead(batches)):
            if number == 0:
                self._merger.keep_dictionaries(batch.schema)
            yield self._finished(self._merger.merge_batch(batch), are_new=False)
        for rows in self._merger.updated():
            self.after(rows)
            yield self._finished(rows, are_new=False)
        inserts = self._merger.in_schema_of_rows(self._inserts)
        for rows in (self._merger.rest(), inserts):
            self._arrived += rows.column(RECORD_KEY).chunks
            self.after(rows)
            yield self._finished(rows, are_new=True)

    def _batches(self) -> Iterator[pa.Table]:
        columns = tuple(self._schema.names)
        reader = SliceReader(self._storage, replace(self._spec.read, columns=columns))
        # Keys that came with logs are not in the old file's filter, and no footer comes with them.
        return reader.rows_to_rewrite(self._slice, self._keep_bloom)

    def _finished(self, rows: pa.Table, *, are_new: bool) -> pa.Table:
        self.keys.add(rows.column(RECORD_KEY), are_new=are_new)
        if self._spec.key_column is not None:
            place = len(OWN_COLUMNS) + self._spec.schema.columns.get_field_index(
                self._spec.key_column
            )
            field = pa.field(self._spec.key_column, pa.string())
            rows = rows.add_column(place, field, rows.column(RECORD_KEY))
        return with_file_columns(rows, self._task.key.partition, self._file_name)

    def _folded(self, changes: KeyedRows) -> Folded:
        rules = self._spec.rules
        records = self._with_own(changes, first=0)
        ordering = rules.ordering(records)
        entries = LogEntries(
            changes.keys,
            np.arange(len(changes)),
            changes.is_delete,
            changes.is_unconditional,
            ordering_values(ordering, len(changes)),
            records,
            {},
            len(changes),
        )
        return fold(entries, rules, self._spec.read.defaults)

    def _with_own(self, rows: KeyedRows, *, first: int) -> pa.Table:
        table = rows.rows
        if not table.num_columns:
            nulls = [pa.nulls(len(rows), field.type) for field in self._spec.schema.columns]
            table = pa.table(nulls, schema=self._spec.schema.columns)
        return with_own_columns(
            table.select(self._schema.names[len(OWN_COLUMNS) :]),
            rows.keys,
            instant=self._spec.instant,
            task_number=self._task.number,
            first=first,
        )

    def _keep_bloom(self, footer: pq.FileMetaData) -> None:
        assert self._slice.base_file is not None
        bloom = _worth_keeping(footer, self._slice.path(self._slice.base_file), REBUILT_UP_TO)
        if bloom is not None:
            self.keys.go_on_from(bloom)


def bloom_worth_keeping(
    storage: Storage, slice_: FileSlice, *, rebuilt_up_to: int
) -> KeptFilter | None:
    """The filter of the old file, if hashing all keys again would take longer than reading it.

    Keys that are gone stay in it, and a filter may say "maybe" of any key.
    """
    base = slice_.base_file
    if base is None:
        return None
    path = slice_.path(base)
    return _worth_keeping(BaseReader(storage).metadata(path), path, rebuilt_up_to)


def _worth_keeping(metadata: pq.FileMetaData, path: str, rebuilt_up_to: int) -> KeptFilter | None:
    if metadata.num_rows <= rebuilt_up_to:
        return None
    footer = key_footer(metadata)
    return None if footer.bloom_text is None else KeptFilter(footer, path)
