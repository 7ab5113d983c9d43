"""Row changes between two states of a file group: what a commit inserted, updated and deleted.

Row images: rows as the JSON texts that change data shows, before and after a change.

Dates, times and timestamps are numbers in the unit that the table stores, as in Hudi. Decimals are
texts, so that none loses a digit, and bytes are Base64.

Group changes: what one commit did to the rows of one file group.

The log of change data says it where the commit wrote one. Otherwise the slices before and after the
commit are compared: its rows are those with its commit time.
"""

import base64
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.listing import assert_whole
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.read.merge.predicate import Predicate
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.merge.spec import ReadSpec, project
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import AFTER, AT, BEFORE, LOGGED_KEY, OPERATION
from lakewarden.engine.table.merge_rules import PartialMode
from lakewarden.engine.table.schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY

Plain = Callable[[object], object]


def row_images(rows: pa.Table) -> pa.StringArray:
    """Each row as one JSON object, its columns in their order."""
    names = rows.column_names
    columns = [_plain_values(rows.column(name)) for name in names]
    if not columns:
        return pa.array(["{}"] * len(rows), pa.string())
    texts = [
        json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)
        for values in zip(*columns, strict=True)
    ]
    return pa.array(texts, pa.string())


def _plain_values(column: pa.ChunkedArray) -> Sequence[object]:
    """The values of a column as JSON has them."""
    plain = _plain(column.type)
    values = _as_numbers(column).to_pylist()
    return values if plain is None else [None if one is None else plain(one) for one in values]


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    numbers = _numbers_type(column.type)
    if numbers == column.type:
        return column
    # Nested types cast only where all of their parts do; a view of the same bytes always fits.
    chunks = [_viewed(chunk, numbers) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=numbers)


def _numbers_type(kind: pa.DataType) -> pa.DataType:
    """A type with numbers in the place of dates and times, at any depth."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) or pa.types.is_date64(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_numbers_type(one.type)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_numbers_type(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numbers_type(kind.value_type)))
    return kind


def _viewed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.view(kind)


def _plain(kind: pa.DataType) -> Plain | None:
    """How a value that is no null becomes one of JSON's; None where it is one as it stands."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_floating(kind):
        return _plain_float
    if pa.types.is_decimal(kind):
        return str
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _plain_bytes
    if pa.types.is_struct(kind):
        return _of_struct({one.name: _plain(one.type) for one in kind})
    if pa.types.is_map(kind):
        return _of_map(_plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_list(_plain(kind.value_type))
    return None


def _plain_float(value: object) -> object:
    assert isinstance(value, float)
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _plain_bytes(value: object) -> object:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode("ascii")


def _of_struct(parts: dict[str, Plain | None]) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, dict)
        return {name: _made(part, value[name]) for name, part in parts.items()}

    return plain


def _of_map(part: Plain | None) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, list)
        return {str(key): _made(part, item) for key, item in value}

    return plain


def _of_list(part: Plain | None) -> Plain:
    def plain(value: object) -> object:
        assert isinstance(value, list)
        return [_made(part, item) for item in value]

    return plain


def _made(part: Plain | None, value: object) -> object:
    return value if part is None or value is None else part(value)


INSERT, UPDATE, DELETE = "i", "u", "d"


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """Changes side by side: rows before and after them, all null where there is none."""

    operations: pa.Array
    before: pa.Table
    after: pa.Table
    has_before: pa.Array
    has_after: pa.Array

    @property
    def keys(self) -> pa.ChunkedArray:
        after = self.after.column(RECORD_KEY)
        return pc.if_else(self.has_after, after, self.before.column(RECORD_KEY))


def changes_between(
    before: pa.Table, after: pa.Table, instant: str, *, fills: bool = False
) -> RowChanges:
    """What a commit did: its rows are those with its commit time.

    Where a late record may fill a row that stays, rows of other commits are compared, too.
    """
    old, new = _keys(before), _keys(after)
    is_own = _as_flags(pc.equal(after.column(COMMIT_TIME), instant))
    own, kept = np.flatnonzero(is_own), np.flatnonzero(~is_own)
    # An insert beside a row of its key leaves that row.
    is_update = _among(new, old)[own] & ~_among(new.take(pa.array(own)), new.take(pa.array(kept)))
    filled = _filled(before, after, kept) if fills else kept[:0]
    gone = np.flatnonzero(~_among(old, new))
    places = pc.index_in(new, value_set=old).fill_null(0).to_numpy(zero_copy_only=False)
    return _changes(
        before,
        after,
        operations=[
            *(UPDATE if one else INSERT for one in is_update),
            *[UPDATE] * len(filled),
            *[DELETE] * len(gone),
        ],
        before_at=np.concatenate([np.where(is_update, places[own], -1), places[filled], gone]),
        after_at=np.concatenate([own, filled, np.full(len(gone), -1)]),
    )


def _changes(
    before: pa.Table,
    after: pa.Table,
    *,
    operations: list[str],
    before_at: np.ndarray,
    after_at: np.ndarray,
) -> RowChanges:
    has_before, has_after = before_at >= 0, after_at >= 0
    return RowChanges(
        pa.array(operations, pa.string()),
        before.take(pa.array(before_at, mask=~has_before)),
        after.take(pa.array(after_at, mask=~has_after)),
        pa.array(has_before),
        pa.array(has_after),
    )


def _filled(before: pa.Table, after: pa.Table, kept: np.ndarray) -> np.ndarray:
    """Which of the rows that stay have other values than before."""
    names = [name for name in after.column_names if name not in META_COLUMNS]
    at = pc.index_in(_keys(after).take(pa.array(kept)), value_set=_keys(before))
    old, new = before.take(at).select(names), after.take(pa.array(kept)).select(names)
    differs = pc.not_equal(row_images(old), row_images(new))
    return np.asarray(kept[_as_flags(pc.and_(at.is_valid(), differs))])


def _keys(rows: pa.Table) -> pa.Array:
    column = rows.column(RECORD_KEY).combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _among(keys: pa.Array, others: pa.Array) -> np.ndarray:
    return _as_flags(pc.is_in(keys, value_set=others))


def _as_flags(flags: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return np.asarray(flags, dtype=bool)


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
        at = pc.index_in(logged.column(LOGGED_KEY), value_set=_record_keys(rows))
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


def _record_keys(rows: pa.Table) -> pa.Array:
    return rows.column(RECORD_KEY).combine_chunks()
