"""Row changes between two states of a file group: what a commit inserted, updated and deleted."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.read.merge.row_images import row_images
from lakewarden.engine.table.schema import COMMIT_TIME, META_COLUMNS, RECORD_KEY

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
