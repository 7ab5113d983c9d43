"""Tasks of a clustering: which slices become which new files, decided before any is written.

Encoding: the rows of some slices, with their logs merged, sorted if asked for, in new files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import (
    BaseFile,
    DataFile,
    LogFile,
    log_order,
    parse_file_name,
)
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.replace import ClusteringGroup, ClusteringSlice
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.executor import LocalExecutor, ahead
from lakewarden.engine.services.clustering.order import Places, RowOrder, plain
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkerKind, leave_marker
from lakewarden.engine.write.files.base_files import new_base_file, row_group_rows, write_base_file
from lakewarden.engine.write.files.file_content import KeyGatherer
from lakewarden.engine.write.files.spec import (
    OWN_COLUMNS,
    WriteSpec,
    WrittenFile,
    with_file_columns,
)

# File name -> file, by partition.
KnownFiles = Mapping[str, Mapping[str, DataFile]]


@dataclass(frozen=True, slots=True)
class NanNotes:
    """Where NaN is: a footer does not tell."""

    # Columns that have one in some file.
    known: frozenset[str] = frozenset()
    # File name -> columns that nothing is known of, so that their values have to be looked at.
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterTask:
    """Slices of a partition whose rows go into new file groups, as many as there are ids."""

    # The number of its first file within the plan; others follow.
    number: int
    partition: str
    slices: tuple[FileSlice, ...]
    file_ids: tuple[str, ...]
    nan: NanNotes = field(default_factory=NanNotes)

    @property
    def size_bytes(self) -> int:
        return sum(slice_.size_bytes for slice_ in self.slices)

    @property
    def has_logs(self) -> bool:
        return any(slice_.log_files or slice_.base_file is None for slice_ in self.slices)


def cluster_tasks(
    groups: Sequence[ClusteringGroup], known: KnownFiles, ids: Ids, *, is_sorted: bool
) -> tuple[ClusterTask, ...]:
    """The tasks of a plan; rows that are not sorted need not meet those of other files."""
    tasks: list[ClusterTask] = []
    number = 0
    for group in groups:
        for partition, slices in _by_partition(group, known).items():
            outputs = max(group.num_output_file_groups or 1, 1)
            for share in _shares(slices, outputs, is_sorted=is_sorted):
                count = outputs if len(share) == len(slices) else 1
                file_ids = tuple(f"{ids.fresh()}-0" for _ in range(count))
                tasks.append(ClusterTask(number, partition, share, file_ids))
                number += count
    return tuple(tasks)


def consumed_files(groups: Sequence[ClusteringGroup]) -> dict[FileGroupId, frozenset[str]]:
    """The files that the new ones stand for."""
    return {
        FileGroupId(one.partition_path or "", one.file_id or ""): frozenset(_names(one))
        for group in groups
        for one in group.slices
    }


def _by_partition(group: ClusteringGroup, known: KnownFiles) -> dict[str, tuple[FileSlice, ...]]:
    found: dict[str, tuple[FileSlice, ...]] = {}
    for one in group.slices:
        partition = one.partition_path or ""
        files = known.get(partition, {})
        found[partition] = (*found.get(partition, ()), _slice_of(one, partition, files))
    return found


def _slice_of(planned: ClusteringSlice, partition: str, known: Mapping[str, DataFile]) -> FileSlice:
    """Exactly the files that the plan names; one that is gone is missed when it is read."""
    if planned.bootstrap_file_path:
        raise InvalidRequest(
            "unsupported_bootstrap",
            what=f"File group {planned.file_id} has a bootstrapped base file.",
            why="Its rows are in a file outside the table.",
            now="Cluster it with Hudi.",
        )
    parsed = [known.get(name) or parse_file_name(name, 0) for name in _names(planned)]
    bases = [file for file in parsed if isinstance(file, BaseFile)]
    logs = sorted((file for file in parsed if isinstance(file, LogFile)), key=log_order)
    first = bases[0].instant if bases else logs[0].instant if logs else ""
    return FileSlice(
        partition, planned.file_id or "", first, bases[0] if bases else None, tuple(logs)
    )


def _names(planned: ClusteringSlice) -> Iterator[str]:
    for address in (planned.data_file_path, *planned.delta_file_paths):
        if address:
            yield address.rpartition("/")[2]


def _shares(
    slices: tuple[FileSlice, ...], outputs: int, *, is_sorted: bool
) -> Iterator[tuple[FileSlice, ...]]:
    """Slices for each new file, of about the same size; all together where rows have to meet."""
    if is_sorted or outputs > len(slices):
        yield slices
        return
    left, size = outputs, sum(slice_.size_bytes for slice_ in slices)
    share: list[FileSlice] = []
    gathered = 0
    for place, slice_ in enumerate(slices):
        share.append(slice_)
        gathered += slice_.size_bytes
        is_enough = gathered * left >= size
        is_short = len(slices) - place - 1 == left - 1
        if left > 1 and (is_enough or is_short):
            yield tuple(share)
            left, size = left - 1, size - gathered
            share, gathered = [], 0
    yield tuple(share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """How files are made, and in which order their rows are."""

    write: WriteSpec
    order: RowOrder = field(default_factory=RowOrder)
    copied_rows_min: int
    sorted_together_bytes: int


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
