"""Encoding: the rows of some slices, with their logs merged, sorted if asked for, in new files."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.ahead import ahead
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.clustering.order import Places, RowOrder, plain
from lakewarden.engine.services.clustering.tasks import ClusterSpec, ClusterTask
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkerKind, leave_marker
from lakewarden.engine.write.files.base_files import row_group_rows
from lakewarden.engine.write.files.base_writing import new_base_file, write_base_file
from lakewarden.engine.write.files.key_footers import KeyGatherer
from lakewarden.engine.write.files.meta_columns import OWN_COLUMNS, with_file_columns
from lakewarden.engine.write.files.spec import WriteSpec
from lakewarden.engine.write.files.written import WrittenFile

NO_KEYS = pa.array([], pa.string())


def encode_files(
    place: FencedTaskContext, spec: ClusterSpec, task: ClusterTask
) -> Iterator[WrittenFile]:
    """The new files of a task, one after the other; those without rows are not made."""
    rows = _Rows(place, spec, task)
    # Unsorted rows come slice by slice, and slices differ in what they keep as dictionaries.
    parts = rows.sorted() if spec.order.is_sorted else map(plain, rows.unsorted())
    dealing = _Dealing(parts)
    each = rows.each(len(task.file_ids))
    for place_of_id, file_id in enumerate(task.file_ids):
        is_last = place_of_id == len(task.file_ids) - 1
        if dealing.has_more():
            key = FileGroupId(task.partition, file_id)
            share = dealing.share(None if is_last else each)
            yield _write(place, spec.write, key, task.number + place_of_id, share)


def _write(
    place: FencedTaskContext,
    spec: WriteSpec,
    key: FileGroupId,
    number: int,
    parts: Iterator[pa.Table],
) -> WrittenFile:
    """One new base file."""
    target = new_base_file(key, spec, number)
    leave_marker(place.storage, spec.instant, target, MarkerKind.CREATE)
    keys = KeyGatherer(spec.key_footers)
    arrived: list[pa.Array] = []

    def noted() -> Iterator[pa.Table]:
        for rows in parts:
            place.assert_mine()
            column = rows.column(RECORD_KEY)
            keys.add(column, are_new=True)
            if spec.tracks_keys:
                arrived.extend(column.chunks)
            yield with_file_columns(rows, target.partition, target.name)

    made = noted() if spec.threads == 1 else ahead(noted())
    file, stat = write_base_file(place.storage, spec, target, key.file_id, made, keys)
    place.keep(target.path)
    stat = replace(stat, num_inserts=stat.num_writes)
    return WrittenFile(key, stat, file, pa.concat_arrays([NO_KEYS, *arrived]), NO_KEYS)


class _Rows:
    """The rows of a task's slices, as their own columns."""

    def __init__(self, place: FencedTaskContext, spec: ClusterSpec, task: ClusterTask) -> None:
        self._place = place
        self._spec = spec
        self._task = task
        self._count = 0

    def each(self, outputs: int) -> int:
        """Rows of each new file, by what the base files have; exact once rows are sorted."""
        count = self._count
        if not count and outputs > 1:
            bases = [slice_.path(one) for slice_ in self._task.slices if (one := slice_.base_file)]
            reader = BaseReader(self._place.storage)
            count = sum(reader.metadata(path).num_rows for path in bases)
        return max(-(-count // outputs), 1)

    def unsorted(self) -> Iterator[pa.Table]:
        """The rows slice after slice; memory holds a batch and the logs of one slice."""
        return self._batches(self._columns)

    def sorted(self) -> Iterator[pa.Table]:
        """The rows in order; those of large groups are read several times, a range each time."""
        passes = -(-self._task.size_bytes // max(self._spec.sorted_together_bytes, 1))
        return self._sorted_at_once() if passes <= 1 else self._sorted_in(passes)

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*OWN_COLUMNS, *self._spec.write.schema.columns.names)

    def _sorted_at_once(self) -> Iterator[pa.Table]:
        reader = self._reader(self._columns)
        threads = LocalExecutor(self._spec.write.threads)
        of_slices = threads.map(lambda one: list(self._merged(reader, one)), self._task.slices)
        rows = _in_one_piece([part for parts in of_slices for part in parts])
        self._count = len(rows)
        return self._taken(rows, self._spec.order.places(rows))

    def _sorted_in(self, passes: int) -> Iterator[pa.Table]:
        keys = pa.concat_tables(map(plain, self._batches(self._sort_columns)))
        self._count = len(keys)
        ranks = _ranks(self._spec.order, keys)
        del keys
        each = max(-(-len(ranks) // passes), 1)
        return self._ranges(ranks, each)

    def _ranges(self, ranks: Places, each: int) -> Iterator[pa.Table]:
        for first in range(0, len(ranks), each):
            kept: list[pa.Table] = []
            kept_ranks: list[Places] = []
            at = 0
            for rows in self._batches(self._columns):
                own = ranks[at : at + len(rows)]
                at += len(rows)
                is_within = (own >= first) & (own < first + each)
                kept.append(rows.filter(pa.array(is_within)))
                kept_ranks.append(own[is_within])
            assert at == len(ranks), "a slice returned other rows when it was read again"
            whole = _in_one_piece(kept)
            yield from self._taken(whole, np.argsort(np.concatenate(kept_ranks)))

    def _taken(self, rows: pa.Table, places: Places) -> Iterator[pa.Table]:
        """Rows in another order, as many at once as a row group takes."""
        step = row_group_rows(rows, self._spec.write.files)
        for first in range(0, len(places), step):
            yield rows.take(pa.array(places[first : first + step]))

    @property
    def _sort_columns(self) -> list[str]:
        return list(dict.fromkeys(self._spec.order.columns))

    def _reader(self, columns: Iterable[str]) -> SliceReader:
        read = replace(self._spec.write.read, columns=tuple(columns))
        return SliceReader(self._place.storage, read)

    def _batches(self, columns: Iterable[str]) -> Iterator[pa.Table]:
        """The slices' rows, the next batch being read while one is worked on."""
        reader = self._reader(columns)
        parts = (part for slice_ in self._task.slices for part in self._merged(reader, slice_))
        return parts if self._spec.write.threads == 1 else ahead(parts)

    def _merged(self, reader: SliceReader, slice_: FileSlice) -> Iterator[pa.Table]:
        """A slice's rows; texts that its base file keeps as dictionaries stay so."""
        merge = reader.merge(slice_)
        for rows in merge.base_rows():
            self._place.assert_mine()
            yield rows
        yield merge.new_rows()


class _Dealing:
    """Deals rows out, so many to each new file."""

    def __init__(self, parts: Iterator[pa.Table]) -> None:
        self._parts = parts
        self._left: pa.Table | None = None

    def has_more(self) -> bool:
        """Whether there is a row left."""
        while self._left is None or not len(self._left):
            self._left = next(self._parts, None)
            if self._left is None:
                return False
        return True

    def share(self, count: int | None) -> Iterator[pa.Table]:
        """The next rows, so many at most; all of them without a number."""
        while (count is None or count > 0) and self.has_more():
            assert self._left is not None
            part = self._left if count is None else self._left.slice(0, count)
            self._left = self._left.slice(len(part))
            count = None if count is None else count - len(part)
            yield part


def _alike(tables: list[pa.Table]) -> list[pa.Table]:
    """The tables with plain columns where only some have dictionaries."""
    differing = {
        field.name
        for table in tables
        for field, first in zip(table.schema, tables[0].schema, strict=True)
        if field.type != first.type
    }
    return [plain(table, differing) for table in tables]


def _ranks(order: RowOrder, keys: pa.Table) -> Places:
    """For each row its place among the sorted ones."""
    places = order.places(keys)
    ranks = np.empty(len(places), np.int64)
    ranks[places] = np.arange(len(places))
    return ranks


def _in_one_piece(tables: list[pa.Table]) -> pa.Table:
    """Tables below each other, each column in one piece, so that rows are taken out fast.

    The tables are let go of, column by column, or they would be in memory twice.
    """
    alike = _alike(tables)
    tables.clear()
    whole = pa.concat_tables(alike).unify_dictionaries()
    alike.clear()
    columns = []
    names = whole.schema
    while whole.num_columns:
        columns.append(whole.column(0).combine_chunks())
        whole = whole.remove_column(0)
    return pa.table(columns, schema=names)
