"""Clustering: one task makes the new files of some slices, by copying or by encoding.

Copying: row groups of base files become one new file as bytes, without being decoded.

Only row groups that are too small to be left so are encoded anew, many together. What the footer
and the statistics need is taken from the footers, and from the key column where these don't tell.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.parquet_footer import KeyFooter, key_footer_of
from lakewarden.engine.formats.parquet_stitch.footer import Footer, RowGroup, read_footer
from lakewarden.engine.formats.parquet_stitch.stitcher import (
    KeyUnion,
    Range,
    Stitcher,
    obstacle,
    same_columns,
)
from lakewarden.engine.formats.range_source import BufferSource, FileRanges
from lakewarden.engine.metadata.entries.changes import NewFile
from lakewarden.engine.metadata.entries.summaries import columns_with_nan
from lakewarden.engine.metadata.reading.column_stats import ColumnRange, column_ranges
from lakewarden.engine.metadata.reading.table import COLUMN_STATS
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.services.clustering.tasks import (
    NO_KEYS,
    ClusterSpec,
    ClusterTask,
    NanNotes,
    encode_files,
)
from lakewarden.engine.services.execution.task_context import FencedTaskContext
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import FILE_NAME, RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.write.files.base_files import (
    EXTENSION,
    base_writer,
    file_stat,
    footer_texts,
    new_base_file,
    row_group_rows,
)
from lakewarden.engine.write.files.file_content import KeyGatherer, with_base_content
from lakewarden.engine.write.files.spec import WriteSpec, WrittenFile, base_file_summaries

# Bytes that are in memory at once; more of them leave the processor's cache, at twice the cost.
_STEP = 1 << 20
# A row group of so many bytes is copied however few rows it has.
_COPIED_BYTES_MIN = 16 << 20
# Rows of small row groups that are encoded together.
_ENCODED_ROWS_MAX = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A base file to be copied."""

    slice: FileSlice
    footer: Footer

    @property
    def path(self) -> str:
        assert self.slice.base_file is not None
        return self.slice.path(self.slice.base_file)


@dataclass(frozen=True, slots=True, eq=False)
class Copyable:
    """Base files that can become one as bytes, and what their footers say of their keys."""

    parts: tuple[Part, ...]
    keys: KeyFooter | None
    # The columns as the files have them.
    schema: pa.Schema


def copyable(place: FencedTaskContext, spec: ClusterSpec, task: ClusterTask) -> Copyable | None:
    """The base files of a task if they can be copied, and if that pays; None otherwise."""
    if spec.order.is_sorted or task.has_logs or len(task.file_ids) != 1:
        return None
    if spec.write.has_virtual_keys and spec.write.tracks_keys:
        # No file tells which keys arrive.
        return None
    union = KeyUnion(spec.write.files.bloom.entries_max)
    parts: list[Part] = []
    schema: pa.Schema | None = None
    for slice_ in task.slices:
        place.assert_mine()
        base = slice_.base_file
        assert base is not None
        if base.extension != EXTENSION or spec.write.read.history.sources(base.instant):
            return None
        path = slice_.path(base)
        with BaseReader(place.storage).opened(path) as source:
            found = read_footer(FileRanges(source), path)
            if parts and not same_columns(parts[0].footer, found.footer):
                return None
            schema = schema or pq.ParquetFile(source).schema_arrow
        union.add(key_footer_of(found.texts), rows=found.footer.rows, path=path)
        parts.append(Part(slice_, found.footer))
    assert schema is not None
    footers = [part.footer for part in parts]
    if obstacle(footers, {FILE_NAME: ""}) is not None or not _has_columns_of_now(schema, spec):
        return None
    sizes = [_is_large(group, spec) for footer in footers for group in footer.groups]
    if not any(sizes) or not (all(sizes) or _encodes_alike(schema, footers[0], spec)):
        return None
    return Copyable(tuple(parts), union.footer(), schema)


def copy_file(
    place: FencedTaskContext, spec: ClusterSpec, task: ClusterTask, source: Copyable
) -> WrittenFile:
    """The new file of a task."""
    (file_id,) = task.file_ids
    key = FileGroupId(task.partition, file_id)
    target = new_base_file(key, spec.write, task.number)
    leave_marker(place.storage, spec.write.instant, target, MarkerKind.CREATE)
    copying = _Copying(place, spec, task, source, target)
    footer = copying.write()
    place.keep(target.path)
    columns = base_file_summaries(
        place.storage, target.path, footer, spec.write.summarised, copying.with_nan
    )
    known = NewFile(target.partition, target.name, copying.size_bytes, columns)
    options = spec.write.files.bloom
    file = with_base_content(place.storage, target.path, known, spec.write.indexes, options)
    stat = file_stat(target, file_id, copying.size_bytes, num_writes=footer.num_rows)
    stat = replace(stat, num_inserts=stat.num_writes)
    return WrittenFile(key, stat, file, copying.arrived, NO_KEYS)


class _Copying:
    """One new file on its way."""

    def __init__(
        self,
        place: FencedTaskContext,
        spec: ClusterSpec,
        task: ClusterTask,
        source: Copyable,
        target: MarkedFile,
    ) -> None:
        self._place = place
        self._spec = spec
        self._task = task
        self._source = source
        self._target = target
        self._stitcher = Stitcher(source.parts[0].footer, {FILE_NAME: target.name})
        self._small: list[pa.Table] = []
        self._keys = KeyGatherer(spec.write.key_footers)
        self._arrived: list[pa.Array] = []
        self.with_nan = set(task.nan.known)
        self.size_bytes = 0

    @property
    def arrived(self) -> pa.Array:
        return pa.concat_arrays([NO_KEYS, *self._arrived])

    def write(self) -> pq.FileMetaData:
        """Write the file; its footer as Arrow reads it."""
        with self._place.storage.create(self._target.path) as stream:
            stream.write(Stitcher.HEAD)
            for part in self._source.parts:
                with BaseReader(self._place.storage).opened(part.path) as source:
                    self._look_at(part, source)
                    self._copy(part, source, stream)
            self._flush(stream)
            keys = self._source.keys or self._keys.footer()
            texts = footer_texts(keys, self._spec.write.records_text)
            tail = self._stitcher.finish(texts)
            stream.write(tail)
            self.size_bytes = stream.tell()
        return pq.read_metadata(pa.BufferReader(tail))

    def _look_at(self, part: Part, source: pa.NativeFile) -> None:
        """Read the few columns whose values matter."""
        assert part.slice.base_file is not None
        floats = self._task.nan.unknown.get(part.slice.base_file.name, ())
        wants_keys = self._spec.write.tracks_keys or self._source.keys is None
        names = [*floats, *((RECORD_KEY,) if wants_keys else ())]
        if not names or not part.footer.rows:
            return
        rows = pq.ParquetFile(source).read(names)
        self.with_nan |= columns_with_nan(rows)
        if self._source.keys is None:
            self._keys.add(rows.column(RECORD_KEY), are_new=True)
        if self._spec.write.tracks_keys:
            self._arrived += rows.column(RECORD_KEY).chunks

    def _copy(self, part: Part, source: pa.NativeFile, stream: pa.NativeFile) -> None:
        small: list[int] = []
        for number, group in enumerate(part.footer.groups):
            if _is_large(group, self._spec):
                self._append(group, source, stream)
            elif group.rows:
                small.append(number)
        if small:
            file = pq.ParquetFile(source)
            for number in small:
                self._small.append(file.read_row_group(number))
                if sum(map(len, self._small)) >= _ENCODED_ROWS_MAX or (
                    sum(rows.nbytes for rows in self._small)
                    >= self._spec.write.files.row_group_bytes
                ):
                    self._flush(stream)

    def _append(self, group: RowGroup, source: pa.NativeFile, stream: pa.NativeFile) -> None:
        for piece in self._stitcher.add(group):
            if isinstance(piece, Range):
                for buffer in _buffers(source, piece):
                    self._place.assert_mine()
                    stream.write(buffer)
            else:
                stream.write(piece)

    def _flush(self, stream: pa.NativeFile) -> None:
        """Encode the rows of small row groups together."""
        if not self._small:
            return
        content = _encoded(pa.concat_tables(self._small), self._source.schema, self._spec)
        self._small.clear()
        footer = read_footer(BufferSource(content), self._target.path).footer
        for group in footer.groups:
            self._append(group, pa.BufferReader(content), stream)


def _buffers(source: pa.NativeFile, piece: Range) -> Iterator[pa.Buffer]:
    source.seek(piece.start)
    left = piece.length
    while left > 0:
        buffer = source.read_buffer(min(left, _STEP))
        if not len(buffer):
            raise OSError(f"{left} bytes are missing at {piece.start + piece.length - left}.")
        left -= len(buffer)
        yield buffer


def _is_large(group: RowGroup, spec: ClusterSpec) -> bool:
    """Whether a row group is left as it is."""
    is_enough = group.rows >= spec.copied_rows_min or group.size_bytes >= _COPIED_BYTES_MIN
    return bool(group.rows) and is_enough


def _has_columns_of_now(schema: pa.Schema, spec: ClusterSpec) -> bool:
    """Whether files have the table's columns, all of them, in its types."""
    now = spec.write.schema.with_meta()
    return schema.names == now.names and all(
        schema.field(field.name).type == field.type for field in now
    )


def _encodes_alike(schema: pa.Schema, footer: Footer, spec: ClusterSpec) -> bool:
    """Whether rows that we encode can stand beside those of the files."""
    content = _encoded(schema.empty_table(), schema, spec)
    return same_columns(footer, read_footer(BufferSource(content), "a new file").footer)


def _encoded(rows: pa.Table, schema: pa.Schema, spec: ClusterSpec) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    with base_writer(stream, schema, rows, spec.write.files) as writer:
        if len(rows):
            writer.write_table(rows, row_group_size=row_group_rows(rows, spec.write.files))
    return stream.getvalue()


@dataclass(frozen=True, slots=True, eq=False)
class ClusteringWork:
    """Makes the files of a task; it travels to other processes."""

    spec: ClusterSpec

    def __call__(self, place: FencedTaskContext, task: ClusterTask) -> tuple[WrittenFile, ...]:
        # What the files before have taken goes back to the system.
        pa.default_memory_pool().release_unused()
        write = replace(self.spec.write, task_attempt=place.task_attempt)
        spec = replace(self.spec, write=write)
        source = copyable(place, spec, task)
        if source is not None:
            return (copy_file(place, spec, task, source),)
        return tuple(encode_files(place, spec, task))


def with_nan_notes(
    state: Snapshot, spec: WriteSpec, tasks: Iterable[ClusterTask]
) -> tuple[ClusterTask, ...]:
    """The tasks, with what the metadata table tells of NaN in the files they may copy."""
    tasks = tuple(tasks)
    own = spec.schema.columns
    floats = [
        name
        for name in spec.summarised
        if name in own.names and pa.types.is_floating(own.field(name).type)
    ]
    copied = [task for task in tasks if not task.has_logs]
    if not floats or not copied:
        return tasks
    ranges = {}
    if state.config.has_metadata(COLUMN_STATS):
        partitions = sorted({task.partition for task in copied})
        statistics = state.metadata.partition(COLUMN_STATS)
        ranges = column_ranges(statistics, floats, partitions)
    return tuple(
        task if task.has_logs else replace(task, nan=_notes(task, floats, ranges)) for task in tasks
    )


def _notes(
    task: ClusterTask,
    floats: list[str],
    ranges: dict[str, dict[str, dict[str, ColumnRange]]],
) -> NanNotes:
    by_file = ranges.get(task.partition, {})
    known: set[str] = set()
    unknown: dict[str, tuple[str, ...]] = {}
    for slice_ in task.slices:
        assert slice_.base_file is not None
        reported = by_file.get(slice_.base_file.name, {})
        answers = {name: _has_nan(reported.get(name)) for name in floats}
        known |= {name for name, answer in answers.items() if answer}
        unknown[slice_.base_file.name] = tuple(
            name for name, answer in answers.items() if answer is None
        )
    return NanNotes(frozenset(known), unknown)


def _has_nan(range_: ColumnRange | None) -> bool | None:
    """Whether a column has a NaN, as far as its statistics tell.

    Java writes 0.0 in the place of bounds where there is one.
    """
    if range_ is None or range_.is_unknown:
        return None
    if range_.is_all_null:
        return False
    assert range_.minimum is not None
    assert range_.maximum is not None
    low, high = range_.minimum.as_py(), range_.maximum.as_py()
    if not isinstance(low, float) or not isinstance(high, float):
        return None
    if math.isnan(high):
        return True
    return None if 0.0 in (low, high) else False
