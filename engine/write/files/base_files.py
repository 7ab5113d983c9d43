"""Base files: Parquet as Java writes and reads it, with Hudi's keys in the footer.

Writing a base file for a commit: the file, its statistics, and what the commit says of it.

Rewriting: the rows of a file group after a write, streamed from its slice and merged.

Rows that stay keep their commit time and sequence number. Memory holds a few batches, and the rows
of the write.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.commit import RuntimeStats, WriteStat
from lakewarden.engine.formats.parquet_footer import KeyFooter, key_footer
from lakewarden.engine.metadata.entries.changes import NewFile, ValueChange
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.entries import LogEntries, ordering_values
from lakewarden.engine.read.merge.fold import Folded, fold
from lakewarden.engine.read.merge.merge import Merger, Tally
from lakewarden.engine.read.merge.row_changes import RowChanges
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.run.executor import ahead
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import (
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
)
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.write.files.file_content import (
    REBUILT_UP_TO,
    KeptFilter,
    KeyGatherer,
    gatherer_of,
    with_gathered,
)
from lakewarden.engine.write.files.log_files import RowCapture, ValueWatch
from lakewarden.engine.write.files.spec import (
    OWN_COLUMNS,
    FileOptions,
    GroupTask,
    NanWatch,
    WriteSpec,
    base_file_summaries,
    with_file_columns,
    with_own_columns,
    without_identity,
)

EXTENSION = "parquet"
# Rows whose values tell whether a column repeats them, and how much they have to.
_SAMPLE_ROWS = 4096
_REPEATED_SHARE = 0.5
_CONSTANT_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
# Values that are encoded together: many, but of wide rows no more than fill a page.
_ENCODED_ROWS_MIN, _ENCODED_ROWS_MAX = 1 << 4, 1 << 14
_PAGE_BYTES = 1 << 20
# A row is found by reading its row group. Groups of so many rows take 1 % more space than files
# without any, and scans of them as long; those of fewer rows, or with few values for each of many
# columns, take longer.
_ROW_GROUP_ROWS_MIN, _ROW_GROUP_ROWS_MAX = 1 << 14, 1 << 18
_ROW_GROUP_ROWS_PER_COLUMN = 1 << 8
# Of wide rows a group has fewer, since a reader of one row has all of it in memory.
_ROW_GROUP_BYTES_MAX = 32 << 20


@dataclass(frozen=True, slots=True)
class BaseContent:
    """What a base file is made of: rows in parts, and how the table describes them."""

    schema: pa.Schema
    parts: Iterable[pa.Table]
    # The Avro schema of the records, with the meta columns.
    records_text: str


@dataclass(frozen=True, slots=True, eq=False)
class StoredFile:
    """A base file as it now stands in the storage."""

    size_bytes: int
    footer: pq.FileMetaData
    keys: KeyFooter


def store_base_file(
    storage: Storage, path: str, content: BaseContent, keys: KeyGatherer, options: FileOptions
) -> StoredFile:
    """Write a base file; it is visible as a whole, or not at all.

    The maker of the parts gathers the keys; they have to be complete after the last part.
    """
    footers: list[pq.FileMetaData] = []
    groups = _row_groups(content.parts, options)
    first = next(groups, None)
    schema = content.schema if first is None else first.schema
    with storage.create(path) as stream:
        with base_writer(stream, schema, first, options, footers) as writer:
            group, first = first, None
            while group is not None:
                writer.write_table(group, row_group_size=len(group))
                # What is written makes room before the next one is put together.
                group = None
                group = next(groups, None)
            of_keys = keys.footer()
            writer.add_key_value_metadata(footer_texts(of_keys, content.records_text))
        size_bytes = stream.tell()
    return StoredFile(size_bytes, footers[0], of_keys)


def row_group_rows(rows: pa.Table, options: FileOptions) -> int:
    """How many rows like these a row group has at most."""
    by_columns = max(_ROW_GROUP_ROWS_MIN, rows.num_columns * _ROW_GROUP_ROWS_PER_COLUMN)
    by_bytes = len(rows) * row_group_bytes(options) // max(rows.nbytes, 1)
    return int(max(min(by_columns, _ROW_GROUP_ROWS_MAX, by_bytes), 1))


def row_group_bytes(options: FileOptions) -> int:
    """How much memory the rows of a row group take at most."""
    return min(options.row_group_bytes, _ROW_GROUP_BYTES_MAX)


def base_writer(
    stream: pa.NativeFile,
    schema: pa.Schema,
    sample: pa.Table | None,
    options: FileOptions,
    footers: list[pq.FileMetaData] | None = None,
) -> pq.ParquetWriter:
    """A writer of rows like those of a sample; closing it adds the footer to a list."""
    return pq.ParquetWriter(
        stream,
        schema,
        compression=options.codec.upper() if options.codec != "uncompressed" else "NONE",
        compression_level=options.compression_level,
        use_dictionary=_repeating(sample, options) if options.uses_dictionaries else False,
        data_page_version="1.0",
        store_schema=False,
        metadata_collector=[] if footers is None else footers,
        write_batch_size=_encoded_rows(sample),
    )


def footer_texts(keys: KeyFooter, records_text: str) -> dict[str, str]:
    """What the footer of a base file keeps by key."""
    described = {"parquet.avro.schema": records_text, "writer.model.name": "avro"}
    return {**keys.key_values(), **described}


def _row_groups(parts: Iterable[pa.Table], options: FileOptions) -> Iterator[pa.Table]:
    """The rows in parts of the size of row groups, each but the last one filled."""
    waiting: list[pa.Table] = []
    rows = size = 0
    bytes_max = row_group_bytes(options)
    for part in parts:
        limit = row_group_rows(part, options)
        start = 0
        while start < len(part):
            piece = part.slice(start, max(limit - rows, 1))
            if waiting and (rows >= limit or size + piece.nbytes > bytes_max):
                yield _joined(waiting)
                rows = size = 0
                continue
            waiting.append(piece)
            rows, size, start = rows + len(piece), size + piece.nbytes, start + len(piece)
    if rows:
        yield _joined(waiting)


def _joined(pieces: list[pa.Table]) -> pa.Table:
    """The pieces as one; the list is empty afterwards, so that memory is freed early."""
    whole = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)
    pieces.clear()
    # A writer gives up a dictionary when another one comes within a row group.
    return whole.unify_dictionaries()


def _repeating(sample: pa.Table | None, options: FileOptions) -> list[str]:
    """The columns to keep as dictionaries: hashing values that hardly repeat is lost time."""
    if sample is None:
        return list(_CONSTANT_COLUMNS)
    head = sample.slice(0, _SAMPLE_ROWS)
    return [
        *_CONSTANT_COLUMNS,
        *(
            name
            for name in sample.column_names
            if name not in META_COLUMNS and _repeats(head.column(name))
        ),
    ]


def _encoded_rows(sample: pa.Table | None) -> int:
    """How many values of a column are encoded before the size of its page is looked at."""
    if not sample:
        return _ENCODED_ROWS_MIN
    by_bytes: int = len(sample) * _PAGE_BYTES // max(sample.nbytes, 1)
    # A page is no smaller than what is encoded together, and is read as a whole.
    widest: int = max(column.nbytes for column in sample.columns)
    in_a_page: int = max(len(sample) * _PAGE_BYTES // max(widest, 1), 1)
    return min(max(by_bytes, _ENCODED_ROWS_MIN), in_a_page, _ENCODED_ROWS_MAX)


def _repeats(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return True
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return False
    distinct = pc.count_distinct(column, mode="all").as_py()
    return bool(distinct <= len(column) * _REPEATED_SHARE)


def new_base_file(key: FileGroupId, spec: WriteSpec, task_number: int) -> MarkedFile:
    """The place and name of the base file that a task is going to make."""
    token = spec.write_token(task_number)
    return MarkedFile(key.partition, f"{key.file_id}_{token}_{spec.instant}.{EXTENSION}")


def write_base_file(
    storage: Storage,
    spec: WriteSpec,
    target: MarkedFile,
    file_id: str,
    parts: Iterable[pa.Table],
    keys: KeyGatherer,
) -> tuple[NewFile, WriteStat]:
    """Write a base file; what came of it, as far as the file itself tells."""
    watch, gathered = NanWatch(), gatherer_of(spec.indexes, spec.files.bloom)
    looked_at: Iterable[pa.Table] = gathered.over(watch.over(parts))
    if spec.has_virtual_keys:
        looked_at = map(without_identity, looked_at)
    content = BaseContent(spec.schema.with_meta(), looked_at, spec.records_text)
    stored = store_base_file(storage, target.path, content, keys, spec.files)
    columns = base_file_summaries(
        storage, target.path, stored.footer, spec.summarised, watch.columns
    )
    known = NewFile(target.partition, target.name, stored.size_bytes, columns)
    file = with_gathered(known, stored.keys, gathered, spec.indexes)
    rows = stored.footer.num_rows
    return file, file_stat(target, file_id, stored.size_bytes, num_writes=rows)


def file_stat(target: MarkedFile, file_id: str, size_bytes: int, *, num_writes: int) -> WriteStat:
    """What a commit says of any new file."""
    return WriteStat(
        file_id=file_id,
        path=target.path,
        partition_path=target.partition,
        num_writes=num_writes,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        runtime_stats=RuntimeStats(),
    )


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
