"""The table as it is: what an index that is built now has to hold.

Statistics are of all files that are there, keys of the rows that a reader sees.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile, LogFile
from lakewarden.engine.file_groups.slices import Completions, FileSlice
from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.index.slice_keys import KeyColumns, key_columns
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.entries.changes import (
    ColumnSummary,
    Located,
    NewFile,
    ValueChange,
)
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes, SecondaryIndex, value_changes
from lakewarden.engine.metadata.entries.summaries import columns_with_nan, summaries_of_rows
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.read.query.removed_files import being_removed
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.write.files.file_content import with_base_content, with_log_content
from lakewarden.engine.write.files.spec import base_file_summaries
from lakewarden.engine.write.replaced_rows import reader_with_keys

_NOTHING: dict[str, ColumnSummary] = {}
_NO_INDEXES = RowIndexes()


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads what file-keyed kinds say of a file; it travels to wherever files are read."""

    storage: Storage
    columns: tuple[str, ...] = ()
    indexes: RowIndexes = _NO_INDEXES

    def __call__(self, place: tuple[str, DataFile]) -> NewFile:
        partition, file = place
        indexes = self.indexes
        path = f"{partition}/{file.name}" if partition else file.name
        summaries = self.summaries(path, file) if self.columns else _NOTHING
        known = NewFile(partition, file.name, file.size_bytes, summaries)
        match file:
            case BaseFile():
                return with_base_content(
                    self.storage, path, known, indexes, BloomOptions(is_fitted=True)
                )
            case LogFile(is_cdc=False) if indexes.expressions:
                rows = self._log_rows(path, indexes.expression_columns)
                return with_log_content(known, rows, indexes)
        return known

    def summaries(self, path: str, file: DataFile) -> dict[str, ColumnSummary]:
        """What a file itself says of the columns."""
        match file:
            case BaseFile():
                return self._of_base(path)
            case LogFile(is_cdc=False):
                # Of a log that only deletes, every column is known to have no value.
                return summaries_of_rows(self._log_rows(path, self.columns), self.columns)
        return _NOTHING

    def _of_base(self, path: str) -> dict[str, ColumnSummary]:
        """A footer does not tell whether a column has a NaN, so these columns are read."""
        footer, with_nan = self._footer(path)
        return base_file_summaries(self.storage, path, footer, self.columns, with_nan)

    def _footer(self, path: str) -> tuple[pq.FileMetaData, frozenset[str]]:
        with BaseReader(self.storage).opened(path) as source:
            file = pq.ParquetFile(source)
            schema = file.schema_arrow
            floats = [
                name
                for name in self.columns
                if name in schema.names and pa.types.is_floating(schema.field(name).type)
            ]
            with_nan = columns_with_nan(file.read(floats)) if floats else frozenset()
            return file.metadata, with_nan

    def _log_rows(self, path: str, columns: tuple[str, ...]) -> pa.Table:
        parts = []
        for block in read_blocks(self.storage.read(path), path):
            if block.kind is BlockKind.CORRUPT:
                raise block.corrupt(block.reason)
            if block.kind in (BlockKind.AVRO, BlockKind.PARQUET):
                parts.append(records(block, columns))
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Reads the keys of the rows of slices; it travels as well."""

    reader: SliceReader
    columns: KeyColumns

    def __call__(self, slice_: FileSlice) -> Located:
        keys = [part.keys for part in self.parts(slice_)]
        return _located(slice_, pa.concat_arrays([pa.array([], pa.string()), *keys]))

    def parts(self, slice_: FileSlice) -> Iterator[Located]:
        """The same batch by batch: memory holds one, however large the slice is."""
        for batch in self.reader.batches(slice_):
            for keys in _chunks(self.columns.keys_of(batch, slice_.file_id)):
                yield _located(slice_, keys)


def _located(slice_: FileSlice, keys: pa.StringArray) -> Located:
    began = slice_.base_file.instant if slice_.base_file else slice_.base_instant
    return Located(keys, slice_.key, began)


@dataclass(frozen=True, slots=True)
class PresentTable:
    """A table at one moment, with the reader of its files."""

    state: Snapshot
    executor: Executor = field(repr=False)
    # What counts as completed, where the table is looked at as it was.
    completions: Completions | None = field(default=None, repr=False)

    def files(
        self,
        columns: tuple[str, ...] = (),
        indexes: RowIndexes = _NO_INDEXES,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
    ) -> tuple[NewFile, ...]:
        """All files of completed instants, or of one, with what indexes say of them.

        Those that a pending clean removes may be gone before they are read.
        """
        is_completed = (self.completions or self.state.timeline).is_completed
        going = being_removed(self.state.timeline)
        found = [
            (partition, file)
            for partition, files in self.state.source(use_metadata=True).files(partitions).items()
            for file in files
            if (instant is None or file.instant == instant) and is_completed(file.instant)
            if (partition, file.name) not in going
        ]
        return tuple(self.executor.map(FileReader(self.state.storage, columns, indexes), found))

    def slices(self, partitions: Sequence[str] | None = None) -> tuple[FileSlice, ...]:
        """The slices to read, sorted by partition and file id."""
        if self.completions is None:
            return latest_file_slices(self.state, partitions)
        visibility = self.state.visibility(completions=self.completions)
        chosen = None if partitions is None else tuple(partitions)
        groups = self.state.file_groups(visibility, chosen, use_metadata=True)
        return tuple(group.latest_merged() for group in groups)

    def live_files(self, partitions: Sequence[str] | None = None) -> dict[str, tuple[str, ...]]:
        """The names of the files of the newest slices of each partition."""
        live: dict[str, list[str]] = {}
        for slice_ in self.slices(partitions):
            base = [slice_.base_file.name] if slice_.base_file else []
            live.setdefault(slice_.partition, []).extend(base)
            live[slice_.partition] += [log.name for log in slice_.log_files]
        return {partition: tuple(names) for partition, names in live.items()}

    def located(self) -> tuple[Located, ...]:
        """The keys of all rows, by the file groups that they live in."""
        return tuple(self.executor.map(self.keys_of, self.slices()))

    def values_of(
        self, slice_: FileSlice, indexes: Sequence[SecondaryIndex]
    ) -> Iterator[ValueChange]:
        """The values and keys of the rows that a reader sees in a slice, batch by batch."""
        reader = reader_with_keys(self.state, [one.column for one in indexes])
        return values_of(reader, slice_, indexes)

    def keys_of(self, slice_: FileSlice) -> Located:
        """The keys of the rows of a slice."""
        return self.key_reader(slice_)

    @property
    def key_reader(self) -> KeyReader:
        columns = key_columns(self.state.config)
        spec = read_spec(self.state, Query(columns=columns.names), None)
        return KeyReader(SliceReader(self.state.storage, spec), columns)


def values_of(
    reader: SliceReader, slice_: FileSlice, indexes: Sequence[SecondaryIndex]
) -> Iterator[ValueChange]:
    """The values and keys of the rows of a slice, batch by batch."""
    for batch in reader.batches(slice_):
        yield from value_changes(indexes, None, pa.Table.from_batches([batch]))


def repeated_key(located: tuple[Located, ...], *, is_partitioned: bool) -> str | None:
    """A key that lives in two places, in the whole table or in one of its partitions."""
    groups: dict[str, list[pa.Array]] = {}
    for one in located:
        groups.setdefault(one.home.partition if is_partitioned else "", []).append(one.keys)
    for parts in groups.values():
        keys = pa.concat_arrays(parts)
        if len(keys.unique()) < len(keys):
            counts = keys.value_counts().to_pylist()
            return next(str(one["values"]) for one in counts if one["counts"] > 1)
    return None


def refuse_repeated(located: tuple[Located, ...], *, is_partitioned: bool) -> None:
    """Refuse to index keys that live in two places: a reader that trusts it misses one of them."""
    repeated = repeated_key(located, is_partitioned=is_partitioned)
    if repeated is not None:
        raise _repeated(repeated)


def repeated_keys_found(located: Sequence[Located]) -> InvalidRequest:
    """The error for keys of one shard among which one is there twice."""
    repeated = repeated_key(tuple(located), is_partitioned=False)
    assert repeated is not None
    return _repeated(repeated)


def _repeated(key: str) -> InvalidRequest:
    return InvalidRequest(
        "repeated_keys",
        what=f"The table has the record key {key!r} more than once.",
        why=(
            "A record index has one location per key (if partitioned, one per "
            "partition). Readers would miss the other rows."
        ),
        now=(
            "Remove the repeated rows. If keys repeat across partitions only, set "
            "isPartitioned=true."
        ),
        key=key,
    )


def has_renamed_columns(state: Snapshot) -> bool:
    """Whether files may have columns under other names than the table has them now."""
    return bool(state.history.versions)


def _chunks(keys: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    for chunk in chunks:
        plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        yield plain.cast(pa.string())
