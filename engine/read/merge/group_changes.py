"""Group changes: what one commit did to the rows of one file group.

The log of change data says it where the commit wrote one. Otherwise the slices before and after the
commit are compared: its rows are those with its commit time.
"""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.recorded_sizes import assert_whole
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.log.records import records
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.read.merge.projection import project
from lakewarden.engine.read.merge.row_changes import DELETE, changes_between
from lakewarden.engine.read.merge.row_images import row_images
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.merge.spec import ReadSpec
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import AFTER, AT, BEFORE, LOGGED_KEY, OPERATION
from lakewarden.engine.table.merge_rules import PartialMode
from lakewarden.engine.table.schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY

CHANGE_SCHEMA = pa.schema([(name, pa.string()) for name in (OPERATION, AT, BEFORE, AFTER)])


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What one commit did to one file group: the slices around it, and what it has logged of it."""

    instant: str
    # None where the group had no rows before, or has been replaced.
    before: FileSlice | None
    after: FileSlice | None
    # Its logs of change data, if there are any.
    logged: FileSlice | None = None
    # Version 6 mixes the blocks of later commits into the files of a slice.
    reach_before: str | None = None
    reach: str | None = None

    @property
    def size_bytes(self) -> int:
        slices = (self.logged,) if self.logged is not None else (self.before, self.after)
        return sum(one.size_bytes for one in slices if one is not None)


@dataclass(frozen=True, slots=True)
class ChangeSpec:
    """What a query wants of every change."""

    # How slices are read: whole.
    read: ReadSpec
    columns: tuple[str, ...]
    predicate: Predicate | None

    @property
    def output_schema(self) -> pa.Schema:
        return pa.schema([CHANGE_SCHEMA.field(name) for name in self.columns])


class ChangeReader:
    """Reads changes of one table for one query."""

    def __init__(self, storage: Storage, spec: ChangeSpec) -> None:
        self._storage = storage
        self._spec = spec
        names = [name for name in spec.read.schema.names if name not in META_COLUMNS]
        self._images = pa.schema([spec.read.schema.field(name) for name in names])

    def table(self, change: GroupChange) -> pa.Table:
        """The change's rows."""
        rows = self._compared(change) if change.logged is None else self._logged(change)
        if self._spec.predicate is not None:
            rows = self._spec.predicate.apply(rows)
        return rows.select(self._spec.columns)

    def _compared(self, change: GroupChange) -> pa.Table:
        before = self._slice(change.before, change.reach_before)
        after = self._slice(change.after, change.reach)
        fills = self._spec.read.rules.partial is not PartialMode.NONE
        found = changes_between(before, after, change.instant, fills=fills)
        return _rows(
            found.operations,
            change.instant,
            _only(found.has_before, self._texts(found.before)),
            _only(found.has_after, self._texts(found.after)),
        )

    def _logged(self, change: GroupChange) -> pa.Table:
        assert change.logged is not None
        parts = [self._of_block(change, one) for one in self._blocks(change.logged)]
        if any(part is None for part in parts):
            return self._compared(change)
        return pa.concat_tables([CHANGE_SCHEMA.empty_table(), *filter(None, parts)])

    def _of_block(self, change: GroupChange, block: Block) -> pa.Table | None:
        """The changes that a block tells; None where it tells no more than keys."""
        logged = records(block)
        if BEFORE not in logged.column_names:
            return None
        before = self._images_in(logged, BEFORE, block)
        if AFTER in logged.column_names:
            after = self._images_in(logged, AFTER, block)
        else:
            after = self._images_now(change, logged)
        return _rows(logged.column(OPERATION), change.instant, before, after)

    def _images_now(self, change: GroupChange, logged: pa.Table) -> pa.Array:
        """The rows of logged keys as the commit left them; null for those that it deleted."""
        rows = self._slice(change.after, change.reach)
        is_own = pc.equal(rows.column(COMMIT_TIME), change.instant)
        # Of two rows of one key the commit has written the first.
        rows = pa.concat_tables([rows.filter(is_own), rows.filter(pc.invert(is_own))])
        at = pc.index_in(logged.column(LOGGED_KEY), value_set=_keys(rows))
        is_there = pc.and_(at.is_valid(), pc.not_equal(logged.column(OPERATION), DELETE))
        return _only(is_there, self._texts(rows.take(at)))

    def _blocks(self, slice_: FileSlice) -> list[Block]:
        found: list[Block] = []
        for log in slice_.log_files:
            path = slice_.path(log)
            content = self._storage.read(path)
            assert_whole(path, log, len(content))
            for block in read_blocks(content, path):
                if block.kind is BlockKind.CORRUPT:
                    raise block.corrupt(block.reason)
                found.append(block)
        return found

    def _images_in(self, logged: pa.Table, name: str, block: Block) -> pa.ChunkedArray:
        """The images in a column of a block, in the table's columns and types."""
        images = logged.column(name).combine_chunks()
        flat = pa.table(dict(zip((one.name for one in images.type), images.flatten(), strict=True)))
        sources = self._spec.read.history.sources(block.instant)
        texts = row_images(project(flat, self._images, block.path, sources))
        return _only(images.is_valid(), texts)

    def _slice(self, slice_: FileSlice | None, reach: str | None) -> pa.Table:
        if slice_ is None:
            return self._spec.read.output_schema.empty_table()
        spec = self._spec.read
        if reach is not None:
            spec = replace(spec, blocks=replace(spec.blocks, as_of=reach))
        return SliceReader(self._storage, spec).table(slice_)

    def _texts(self, rows: pa.Table) -> pa.StringArray:
        return row_images(rows.select(self._images.names))


def _rows(
    operations: pa.Array | pa.ChunkedArray,
    instant: str,
    before: pa.Array | pa.ChunkedArray,
    after: pa.Array | pa.ChunkedArray,
) -> pa.Table:
    times = pa.repeat(pa.scalar(instant, pa.string()), len(operations))
    return pa.table([operations, times, before, after], schema=CHANGE_SCHEMA)


def _only(chosen: pa.Array | pa.ChunkedArray, texts: pa.Array) -> pa.Array | pa.ChunkedArray:
    """The chosen ones of some texts; null in the place of the others."""
    return pc.if_else(chosen, texts, pa.scalar(None, pa.string()))


def _keys(rows: pa.Table) -> pa.Array:
    return rows.column(RECORD_KEY).combine_chunks()
