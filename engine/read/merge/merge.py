"""Merging folded logs with a base file, batch by batch: the second stage of reading a slice.

A base row is the older record; the rule is that of the logs (see `histories`). Several base rows
with one key, which plain inserts can leave behind, are each treated as if they were alone.
Rows that stay keep their order. Records that replace whole rows come behind all batches, in the
order of the logs, which spares looking them up one by one; rows that are put together from both
are appended to those of their batch.

Merging a slice for good: what a compaction reads, and what it tells of the logs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.log.block import DATA_KINDS, Block, BlockKind
from lakewarden.engine.read.merge.entries import RECORD_KEY_FIELD, ordering_values
from lakewarden.engine.read.merge.fold import Folded, counting_values
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.table.merge_rules import MergeMode, PartialMode

# Records that are handed out together.
_PIECE_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows merging has changed so far."""

    updates: int = 0
    deletes: int = 0
    inserts: int = 0


class RowWatch(Protocol):
    """Sees the rows whose keys are merged, but those that come out of `updated` and `rest`."""

    def before(self, rows: pa.Table) -> None:
        """Base rows whose keys the logs know."""
        ...

    def after(self, rows: pa.Table) -> None:
        """What has become of them within their batch."""
        ...


class Merger:
    """Merges base rows with what the logs say of their keys; remembers which keys it has met.

    Several threads may merge different batches at the same time, if no callback watches.
    """

    def __init__(self, folded: Folded, watch: RowWatch | None = None) -> None:
        self._folded = folded
        self._watch = watch
        self._ordering = folded.ordering
        self._index = KeyIndex(folded.keys, hashes=folded.hashes)
        self._met = np.zeros(len(folded), dtype=bool)
        self._removed = np.zeros(len(folded), dtype=bool)
        # The keys whose records are yet to be handed out, once for each base row they replace.
        self._updated: list[np.ndarray] = []
        self._tallies: list[Tally] = []

    @property
    def tally(self) -> Tally:
        return Tally(
            sum(tally.updates for tally in self._tallies),
            sum(tally.deletes for tally in self._tallies),
            sum(tally.inserts for tally in self._tallies),
        )

    @property
    def keys(self) -> int:
        """How many distinct keys there are to merge with."""
        return len(self._folded)

    @property
    def removed_keys(self) -> pa.Array:
        """The keys whose base rows were deleted so far."""
        return self._folded.keys.filter(pa.array(self._removed))

    def in_schema_of_rows(self, rows: pa.Table) -> pa.Table:
        """Other rows in the types of those that come out of merging."""
        return _in_schema(rows, self._folded.records.schema)

    def keep_dictionaries(self, schema: pa.Schema) -> None:
        """Leave text columns as dictionaries where batches to come have them so.

        The writer of the rows then handles each distinct value once. Not for columns where merging
        moves a value from one record into another.
        """
        folded = self._folded
        if self._puts_together:
            return
        kept = pa.schema([_as_in(field, schema) for field in folded.records.schema])
        self._folded = replace(folded, records=_in_schema(folded.records, kept))

    def merge_batch(self, base: pa.Table | pa.RecordBatch) -> pa.Table:
        """The batch's rows that stay, and those put together; `updated` has the others.

        Columns may be dictionaries; those that stay are written out last, when they are fewest.
        """
        table = base if isinstance(base, pa.Table) else pa.Table.from_batches([base])
        schema = self._folded.records.schema
        assert table.schema.names == schema.names
        at, found = self._index.find(table.column(RECORD_KEY_FIELD))
        if not len(at):
            return _written_out(table, schema)
        self._met[found] = True
        wins, is_new = self._log_wins(table, at, found)
        replaced = wins & ~self._folded.is_delete[found]
        self._removed[found[wins & ~replaced]] = True
        changed = []
        if self._puts_together:
            fills = ~is_new[replaced]
            changed.append(self._replacements(table, at[replaced], found[replaced], fills))
        else:
            self._updated.append(found[replaced])
        stays = np.ones(len(table), dtype=bool)
        stays[at[wins]] = False
        if self._folded.rules.partial is not PartialMode.NONE:
            filled = ~wins & ~self._folded.is_delete[found]
            changed.append(self._filled(table, at[filled], found[filled]))
            stays[at[filled]] = False
        self._tallies.append(Tally(int(replaced.sum()), int((wins & ~replaced).sum())))
        if self._watch is not None:
            self._watch.before(table.take(at))
            for rows in (table.take(at[stays[at]]), *changed):
                self._watch.after(rows)
        if not stays.all():
            table = table.filter(pa.array(stays))
        return pa.concat_tables([_written_out(table, schema), *changed])

    def updated(self) -> Iterator[pa.Table]:
        """After the last batch: the records that have replaced rows, in the order of the logs."""
        keys = np.concatenate([np.zeros(0, dtype=np.int64), *self._updated])
        self._updated.clear()
        places = np.sort(self._folded.rows[keys])
        for start in range(0, len(places), _PIECE_ROWS):
            yield _at(self._folded.records, places[start : start + _PIECE_ROWS])

    def rest(self) -> pa.Table:
        """The records whose keys no base row had, in the order the logs brought them up."""
        chosen = ~self._met & ~self._folded.is_delete
        self._met |= chosen
        self._tallies.append(Tally(inserts=int(chosen.sum())))
        return self._folded.records.take(self._folded.rows[chosen])

    @property
    def _puts_together(self) -> bool:
        """Whether values of the base file may get into records, or the other way round."""
        return bool(self._folded.lacks) or self._folded.rules.partial is not PartialMode.NONE

    def _log_wins(
        self, table: pa.Table, at: np.ndarray, found: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where the log decides, and where it does because a delete in it removed the base row."""
        rules, fates = self._folded.rules, self._folded.fates
        is_wiped, is_cut = fates.wiped[found] >= 0, fates.cut[found] >= 0
        if rules.mode is MergeMode.COMMIT_TIME:
            return np.ones(len(at), dtype=bool), is_wiped | is_cut
        fields = [column.take(at) for column in rules.ordering(table)]
        old = ordering_values(fields, len(at))
        if is_cut.any():
            deletes = self._folded.of_entries.take(np.maximum(fates.cut[found], 0))
            is_cut &= deletes.are_at_least(old)
        is_new = is_wiped | is_cut
        return is_new | self._ordering.take(found).are_at_least(old), is_new

    def _replacements(
        self, table: pa.Table, at: np.ndarray, found: np.ndarray, fills: np.ndarray
    ) -> pa.Table:
        """Log records in place of base rows; some of these fill what the records lack."""
        records = self._folded.records.take(self._folded.rows[found])
        for name, lacks in self._folded.lacks.items():
            records = _patched(records, name, lacks[found] & fills, table.column(name), at)
        return records

    def _filled(self, table: pa.Table, at: np.ndarray, found: np.ndarray) -> pa.Table:
        """Base rows that win; late log records fill their values that don't count."""
        rows = _written_out(table.take(at), self._folded.records.schema)
        records = self._folded.records
        counting = counting_values(rows, self._folded.rules, self._folded.defaults)
        for name, counts in counting.items():
            rows = _patched(rows, name, ~counts, records.column(name), self._folded.rows[found])
        return rows


def _at(rows: pa.Table, places: np.ndarray) -> pa.Table:
    """The rows at ascending places; a stretch of them is not copied."""
    if (np.diff(places) == 1).all():
        return rows.slice(int(places[0]), len(places))
    return rows.take(pa.array(places))


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in the types of a schema, which may differ in being dictionaries."""
    columns = [
        column if column.type == field.type else column.dictionary_encode().cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_in(field: pa.Field, schema: pa.Schema) -> pa.Field:
    """The field, as a dictionary if another schema has one of its values; keys stay plain."""
    kind = schema.field(field.name).type
    is_kept = pa.types.is_dictionary(kind) and kind.value_type == field.type
    return field.with_type(kind) if is_kept and field.name != RECORD_KEY_FIELD else field


def _written_out(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the schema's types, which may differ in being no dictionaries."""
    if rows.schema.equals(schema):
        return rows
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _patched(
    rows: pa.Table, name: str, gaps: np.ndarray, source: pa.ChunkedArray, at: np.ndarray
) -> pa.Table:
    """Rows with one column's gaps filled from a source column at the places of the rows."""
    if not gaps.any():
        return rows
    place = rows.schema.get_field_index(name)
    field = rows.schema.field(place)
    column = pc.if_else(pa.array(gaps), source.take(at).cast(field.type), rows.column(name))
    return rows.set_column(place, field, column)


@dataclass(frozen=True, slots=True)
class LogFigures:
    """What the logs of a slice are made of."""

    blocks: int
    rollback_blocks: int
    data_bytes: int
    # Deletes among them; known once the blocks are read.
    records: int = 0

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "LogFigures":
        data = [block for block in blocks if block.kind in DATA_KINDS]
        commands = sum(block.kind is BlockKind.COMMAND for block in blocks)
        return cls(len(blocks), commands, sum(len(block.content) for block in data))


class SliceMerge:
    """A slice on its way into a new base file: first the rows of the old one, then the others."""

    def __init__(
        self,
        merger: Merger,
        logs: LogFigures,
        base: Iterator[pa.Table],
        finished: Callable[[pa.Table], pa.Table],
    ) -> None:
        self._merger = merger
        self._base = base
        self._finished = finished
        self.logs = logs

    @property
    def tally(self) -> Tally:
        """What the logs have changed; complete after the last row."""
        return self._merger.tally

    @property
    def keys(self) -> int:
        """How many distinct keys the logs are about."""
        return self._merger.keys

    def base_rows(self) -> Iterator[pa.Table]:
        """The rows of the old base file, batch by batch, and at last those that logs replace.

        Texts that the file keeps as dictionaries stay so, in the new rows, too.
        """
        for number, rows in enumerate(self._base):
            if number == 0:
                self._merger.keep_dictionaries(rows.schema)
            yield self._finished(self._merger.merge_batch(rows))
        yield from map(self._finished, self._merger.updated())

    def new_rows(self) -> pa.Table:
        """Afterwards: the rows whose keys the old base file does not have."""
        return self._finished(self._merger.rest())
