"""Reading one slice: its base file in batches, merged with what its logs say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.listing import assert_whole
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import Deletes, deletes
from lakewarden.engine.formats.log.reader import (
    RecordChoice,
    effective_blocks,
    read_apart,
    read_blocks,
    records,
)
from lakewarden.engine.formats.range_source import FileRanges
from lakewarden.engine.kernel.caches import lazy
from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.read.merge.base_file import BaseReader, OnFooter, RowChoice, RowFilter
from lakewarden.engine.read.merge.entries import LogEntries, Records, log_entries
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.key_index import HashedKeys, KeyIndex
from lakewarden.engine.read.merge.merge import LogFigures, Merger, SliceMerge
from lakewarden.engine.read.merge.predicate import Predicate, may_hold_for_nan
from lakewarden.engine.read.merge.spec import ReadSpec, project
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import COMMIT_TIME, PARTITION_PATH, RECORD_KEY, Sources

# Rows that are read and merged together. Larger batches take memory and hardly save time.
BATCH_ROWS = 1 << 16
# Batches that may wait for the logs where all rows are wanted at once.
BATCHES_AHEAD = 32
# Blocks of larger logs are read one by one, so that those dealt with take no memory any more.
APART_BYTES_MIN = 32 << 20

_KEY_FIELD = pa.field(RECORD_KEY, pa.string())


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """Rows with some keys, and the place of the key of each among these."""

    rows: pa.Table
    places: np.ndarray


class SliceReader:
    """Reads slices of one table for one query."""

    def __init__(self, storage: Storage, spec: ReadSpec) -> None:
        self._storage = storage
        self._spec = spec
        self._bases = BaseReader(storage)

    def table(self, slice_: FileSlice, *, workers: int = 1) -> pa.Table:
        """The slice's rows at once, by so many threads."""
        parts = self._parts(slice_, workers=workers, sparing=False)
        return side_by_side(self._spec.output_schema, parts)

    def batches(self, slice_: FileSlice) -> Iterator[pa.RecordBatch]:
        """The slice's rows in batches; memory holds one batch and the slice's logs."""
        for part in self._parts(slice_, workers=1, sparing=True):
            yield from part.to_batches()

    def rows_to_rewrite(
        self, slice_: FileSlice, on_footer: OnFooter | None = None
    ) -> Iterator[pa.Table]:
        """The slice's rows in batches; texts that its base file keeps as dictionaries stay so.

        The base file's footer is handed on where the base file alone is read.
        """
        if slice_.log_files:
            merge = self.merge(slice_)
            yield from merge.base_rows()
            yield merge.new_rows()
            return
        schema = self._merging_schema()
        for rows in self._base_rows(
            slice_, schema, workers=1, sparing=True, for_merging=True, on_footer=on_footer
        ):
            yield self._finished(rows, slice_)

    def merge(self, slice_: FileSlice) -> SliceMerge:
        """The slice as rows for a new base file that replaces it; memory as with batches."""
        schema = self._merging_schema()
        blocks = list(self._blocks(slice_, apart_from=APART_BYTES_MIN))
        logs = LogFigures.of(blocks)
        # Only the blocks that count keep the bytes of the logs in memory.
        blocks = list(effective_blocks(blocks, self._spec.blocks.is_valid, keeps_orphans=True))
        entries = self.entries(blocks, schema)
        merger = Merger(fold(entries, self._spec.rules, self._spec.defaults))
        base = self._base_rows(slice_, schema, workers=1, sparing=True, for_merging=True)
        logs = replace(logs, records=len(entries))
        return SliceMerge(merger, logs, base, partial(self._finished, slice_=slice_))

    def versions(
        self, slice_: FileSlice, keys: KeyIndex, said: Iterable[pa.Table | Deletes]
    ) -> tuple["KeyRows", "KeyRows"]:
        """The rows of some keys as they are, and as they will be after what a new log says.

        Base file and logs are read once, and only what these say of those keys is merged. The log's
        records may have more columns, in any order.
        """
        schema = self._merging_schema()
        base = [schema.empty_table()]
        for rows in self._base_rows(slice_, schema, workers=1, sparing=True):
            base.append(self._of_keys(rows, keys).rows)
        whole = pa.concat_tables(base)
        logs = [
            own
            for one in self.contents(self.log_blocks(slice_), schema)
            if (own := _said_of(one, keys)) is not None
        ]
        later = [one if isinstance(one, Deletes) else self._as_records(one, schema) for one in said]
        before, after = (self._version(slice_, whole, [*logs, *more], keys) for more in ([], later))
        return before, after

    def _version(
        self, slice_: FileSlice, base: pa.Table, logs: list[Records | Deletes], keys: KeyIndex
    ) -> "KeyRows":
        rows = base
        if logs:
            entries = log_entries(logs, base.schema, self._spec.rules)
            merger = Merger(fold(entries, self._spec.rules, self._spec.defaults))
            merged = [merger.merge_batch(base)]
            rows = pa.concat_tables([*merged, *merger.updated(), merger.rest()])
        found = self._of_keys(rows, keys)
        return replace(found, rows=self._finished(found.rows, slice_))

    def _of_keys(self, rows: pa.Table, keys: KeyIndex) -> "KeyRows":
        at, places = keys.find(rows.column(RECORD_KEY))
        return KeyRows(rows.take(pa.array(at)), places)

    def _as_records(self, rows: pa.Table, schema: pa.Schema) -> Records:
        """Records that are about to be written, as they are going to be read."""
        own = project(rows, schema, "a new log")
        return Records(self._with_virtual_keys(own, "a new log"))

    def _merging_schema(self) -> pa.Schema:
        names = self._spec.wanted_for_merging()
        return pa.schema([field for field in self._spec.schema if field.name in names])

    def row_groups(self, slice_: FileSlice) -> tuple[int, int]:
        """How many row groups of the slice's base file are read, and how many there are."""
        if slice_.base_file is None:
            return 0, 0
        sources = self._spec.history.sources(slice_.base_file.instant)
        path = slice_.path(slice_.base_file)
        return self._bases.count_row_groups(path, self._row_filter(slice_, sources))

    def log_blocks(self, slice_: FileSlice) -> tuple[Block, ...]:
        """The blocks of the slice's logs that count, oldest first."""
        # A read of a window needs no rows that were only compacted in it.
        is_whole = self._spec.commit_times is None
        is_valid = self._spec.blocks.is_valid
        return effective_blocks(self._blocks(slice_), is_valid, keeps_orphans=is_whole)

    def entries(self, blocks: list[Block], schema: pa.Schema) -> LogEntries:
        """What blocks say, side by side in their order.

        They are taken out of the list, so that their bytes are not in memory any longer than need
        be.
        """
        taken = (blocks.pop(0) for _ in range(len(blocks)))
        contents = (self._content(block, schema) for block in taken)
        return log_entries(contents, schema, self._spec.rules)

    def contents(self, blocks: Iterable[Block], schema: pa.Schema) -> list[Records | Deletes]:
        """What blocks hold, in the columns and types of a schema."""
        return [self._content(block, schema) for block in blocks]

    def _parts(self, slice_: FileSlice, *, workers: int, sparing: bool) -> Iterator[pa.Table]:
        """The slice's rows in parts; a sparing read takes little memory for each."""
        merges = bool(slice_.log_files)
        names = self._spec.wanted_for_merging() if merges else self._spec.wanted()
        if not merges and self._spec.keys is not None and self._spec.virtual_keys is None:
            # Record keys choose the rows, and say what the key column holds.
            names = names - {self._spec.key_column} | {RECORD_KEY}
        schema = pa.schema([field for field in self._spec.schema if field.name in names])
        read = self._merged if merges else self._base_rows
        for part in read(slice_, schema, workers=workers, sparing=sparing):
            finished = self._finished(part, slice_)
            if len(finished):
                yield finished

    def _base_rows(
        self,
        slice_: FileSlice,
        schema: pa.Schema,
        *,
        workers: int,
        sparing: bool,
        for_merging: bool = False,
        on_footer: OnFooter | None = None,
    ) -> Iterator[pa.Table]:
        if slice_.base_file is None:
            return
        path = slice_.path(slice_.base_file)
        sources = self._spec.history.sources(slice_.base_file.instant)
        stored = [sources.of(name) for name in schema.names]
        tables = self._bases.tables(
            path,
            [name for name in stored if name is not None],
            batch_rows=BATCH_ROWS if for_merging or sparing else None,
            use_threads=workers > 1,
            small_buffers=sparing,
            row_filter=self._row_filter(slice_, sources),
            choice=self._row_choice(slice_, sources),
            keep_dictionaries=for_merging,
            on_footer=on_footer,
        )
        for table in tables:
            rows = project(table, schema, path, sources, keep_dictionaries=for_merging)
            yield self._with_virtual_keys(rows, path)

    def _row_filter(self, slice_: FileSlice, sources: Sources) -> RowFilter | None:
        """The filter by which row groups of the base file may be skipped.

        With logs there is none: a base row that does not match still decides whether a log record
        of its key counts, and gives partial records their values.
        """
        predicate = self._spec.predicate
        if predicate is None or slice_.log_files or not self._are_stored(predicate, sources):
            return None
        # The statistics of a row group leave NaN out.
        if may_hold_for_nan(predicate, self._spec.schema):
            return None
        return predicate.expression, self._spec.schema

    def _are_stored(self, predicate: Predicate, sources: Sources) -> bool:
        """Whether the columns of a filter are in the base file as they are shown."""
        stored = self._spec.stored
        return not any(name in sources or name not in stored for name in predicate.columns)

    def _row_choice(self, slice_: FileSlice, sources: Sources) -> RowChoice | None:
        """Which rows of the base file are wanted: those with a wanted key, or that match.

        With logs only keys choose: what is about one key is about no other.
        """
        keys, predicate = self._spec.keys, self._spec.predicate
        if keys is not None and self._spec.virtual_keys is None:
            return RowChoice((RECORD_KEY,), partial(_with_keys, keys), self._wanted_keys)
        if predicate is None or slice_.log_files or not self._are_stored(predicate, sources):
            return None
        fields = [self._spec.schema.field(name) for name in predicate.columns]
        assert slice_.base_file is not None
        path = slice_.path(slice_.base_file)
        schema = pa.schema(fields)
        return RowChoice(
            predicate.columns,
            lambda rows: predicate.positions(project(rows, schema, path)),
        )

    @lazy
    def _wanted_keys(self) -> HashedKeys | None:
        """The keys that rows must have one of, prepared for all base files."""
        return None if self._spec.keys is None else HashedKeys(self._spec.keys)

    def _merged(
        self, slice_: FileSlice, schema: pa.Schema, *, workers: int, sparing: bool
    ) -> Iterator[pa.Table]:
        """The base rows after the logs; reading goes on while the logs are folded."""
        slice_ = self._sufficient(slice_)
        threads = LocalExecutor(workers)
        merger = threads.start(partial(self._merger, slice_, schema))
        base = self._base_rows(slice_, schema, workers=workers, sparing=sparing, for_merging=True)
        yield from threads.map(lambda rows: merger().merge_batch(rows), base, ahead=BATCHES_AHEAD)
        yield from merger().updated()
        yield merger().rest()

    def _sufficient(self, slice_: FileSlice) -> FileSlice:
        """The slice, or the whole one for records that leave columns to older files."""
        whole = self._spec.whole_slices.get(slice_.key)
        if whole is not None and any(block.is_partial for block in self.log_blocks(slice_)):
            return whole
        return slice_

    def _merger(self, slice_: FileSlice, schema: pa.Schema) -> Merger:
        entries = self.entries(list(self.log_blocks(slice_)), schema)
        return Merger(fold(entries, self._spec.rules, self._spec.defaults))

    def _blocks(self, slice_: FileSlice, apart_from: int | None = None) -> Iterator[Block]:
        """The blocks of all logs; those of files of so many bytes each with bytes of its own."""
        for log in slice_.log_files:
            path = slice_.path(log)
            if apart_from is None or log.size_bytes < apart_from:
                content = self._storage.read(path)
                assert_whole(path, log, len(content))
                found = read_blocks(content, path)
            else:
                with self._storage.open(path) as file:
                    assert_whole(path, log, file.size())
                    found = read_apart(FileRanges(file), path)
            for block in found:
                if block.kind is not BlockKind.CORRUPT:
                    yield block
                elif not self._spec.blocks.skips_corrupt or block.offset < log.recorded_bytes:
                    raise block.corrupt(block.reason)

    def _content(self, block: Block, schema: pa.Schema) -> Records | Deletes:
        return deletes(block) if block.kind is BlockKind.DELETE else self._records(block, schema)

    def _records(self, block: Block, schema: pa.Schema) -> Records:
        sources = self._spec.history.sources(block.instant)
        stored = [sources.of(name) for name in schema.names]
        rows = records(block, [name for name in stored if name is not None], self._record_choice)
        if block.is_partial:
            schema = pa.schema([f for f in schema if sources.of(f.name) in rows.column_names])
        rows = project(rows, schema, block.path, sources)
        rows = self._with_virtual_keys(rows, block.path)
        if self._spec.keys is not None and self._record_choice is None:
            rows = rows.take(pa.array(_with_keys(self._spec.keys, rows)))
        return Records(rows, is_partial=block.is_partial)

    def _with_virtual_keys(self, rows: pa.Table, path: str) -> pa.Table:
        """The rows with their record keys, where files do not store them."""
        scheme = self._spec.virtual_keys
        place = rows.schema.get_field_index(RECORD_KEY)
        if scheme is None or place < 0:
            return rows
        if not scheme.fields or not set(scheme.columns) <= set(rows.column_names):
            raise _no_keys(path)
        # What is stored instead may be a dictionary of nothing but empty texts.
        return rows.set_column(place, _KEY_FIELD, scheme.keys_of_stored(rows))

    @property
    def _record_choice(self) -> RecordChoice | None:
        """Which records of logs are wanted where they store their keys: those with a wanted one."""
        keys = self._spec.keys
        if keys is None or self._spec.virtual_keys is not None:
            return None
        return RecordChoice(RECORD_KEY, partial(_with_keys, keys))

    def _finished(self, rows: pa.Table, slice_: FileSlice) -> pa.Table:
        rows = self._with_key_column(rows)
        rows = self._with_virtual_path(rows, slice_.partition)
        rows = self._with_partition_values(rows, slice_.partition)
        if self._spec.commit_times is not None:
            wanted = pa.array(sorted(self._spec.commit_times))
            rows = rows.filter(pc.is_in(rows.column(COMMIT_TIME), value_set=wanted))
        if self._spec.predicate is not None:
            rows = self._spec.predicate.apply(rows)
        return rows.select(self._spec.columns)

    def _with_key_column(self, rows: pa.Table) -> pa.Table:
        name = self._spec.key_column
        if name is None or name in rows.column_names or name not in self._spec.wanted():
            return rows
        return rows.append_column(self._spec.schema.field(name), rows.column(RECORD_KEY))

    def _with_virtual_path(self, rows: pa.Table, partition: str) -> pa.Table:
        place = rows.schema.get_field_index(PARTITION_PATH)
        if self._spec.virtual_keys is None or place < 0:
            return rows
        path = pa.repeat(pa.scalar(partition, pa.string()), len(rows))
        return rows.set_column(place, pa.field(PARTITION_PATH, pa.string()), path)

    def _with_partition_values(self, rows: pa.Table, partition: str) -> pa.Table:
        """Partition columns that the files lack, or that the path alone knows to be null."""
        for name, text in self._spec.partitions.values(partition).items():
            if name not in rows.column_names:
                continue
            if text is None or self._spec.drops_partition_columns:
                place = rows.schema.get_field_index(name)
                field = rows.schema.field(place)
                value = pa.scalar(text, pa.string()).cast(field.type)
                column = pa.repeat(value, len(rows))
                rows = rows.set_column(place, field, column)
        return rows


def _no_keys(path: str) -> CorruptTable:
    return corrupt(path, None, "It has no columns to make record keys of, and stores no keys.")


def _with_keys(keys: pa.Array, rows: pa.Table) -> np.ndarray:
    """The positions of the rows with one of some keys."""
    if not len(rows):
        return np.zeros(0, np.int64)
    stored = rows.column(RECORD_KEY)
    if pa.types.is_dictionary(stored.type):
        stored = stored.cast(stored.type.value_type)
    return np.flatnonzero(np.asarray(pc.is_in(stored, value_set=keys)))


def side_by_side(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """All rows in one table; without columns, a table still knows how many rows it has."""
    tables = list(parts)
    if len(schema):
        return pa.concat_tables([schema.empty_table(), *tables])
    count = sum(len(table) for table in tables)
    return pa.table({"": pa.nulls(count)}).select([])


def _said_of(block: Records | Deletes, keys: KeyIndex) -> Records | Deletes | None:
    """What the contents of a block say of some keys; None if that is nothing."""
    if isinstance(block, Deletes):
        at, _ = keys.find(block.keys)
        chosen = pa.array(at)
        found: Records | Deletes = Deletes(
            block.keys.take(chosen),
            block.partitions.take(chosen),
            tuple(one.take(chosen) for one in block.ordering),
            block.is_unconditional[at],
        )
    else:
        own = block.table.column(RECORD_KEY) if block.keys is None else block.keys
        at, _ = keys.find(own)
        chosen = pa.array(at)
        left = None if block.keys is None else block.keys.take(chosen)
        found = replace(block, table=block.table.take(chosen), keys=left)
    return found if len(at) else None
