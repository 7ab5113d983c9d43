"""Dividing a bulk insert: balanced new file groups, without a look at what the table has."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.index.incoming import rows_by_partition
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.ids import Ids
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.files.group_work import GroupWork
from lakewarden.engine.write.routing.route import new_group
from lakewarden.engine.write.routing.sizes import SizeLimits

Places = npt.NDArray[np.int64]

# Below this, what a second worker saves is less than what one more file costs later.
PARALLEL_FILE_BYTES_MIN = 16 << 20


def divide(
    rows: KeyedRows,
    limits: SizeLimits,
    ids: Ids,
    *,
    workers: int = 1,
    sort: Sequence[str] = (),
) -> tuple[GroupWork, ...]:
    """New file groups for all rows, each of one partition and of about the same size.

    `sort` names columns by which the rows of a partition are ordered over its files, the record key
    among them as `_hoodie_record_key`; without it rows stay in the order given.
    """
    _check_columns(rows, sort)
    groups = []
    for path, places in rows_by_partition(rows).items():
        kept = places[~rows.is_delete[places]]
        ordered = _sorted(rows, kept, sort) if sort else kept
        share = workers * len(kept) / max(len(rows), 1)
        for part in _parts(ordered, limits, share):
            groups.append(new_group(FileGroupId(path, f"{ids.fresh()}-0"), part))
    return tuple(groups)


def _parts(places: Places, limits: SizeLimits, workers: float) -> Iterator[Places]:
    """Rows in as many parts as file size asks for, or workers can use without tiny files."""
    if not len(places):
        return
    by_size = -(-len(places) // limits.rows_per_file)
    useful = min(round(workers), limits.bytes_of(len(places)) // PARALLEL_FILE_BYTES_MIN)
    yield from np.array_split(places, max(by_size, useful, 1))


def _sorted(rows: KeyedRows, places: Places, columns: Sequence[str]) -> Places:
    indices = pa.array(places)
    table = pa.table(
        {
            name: (rows.keys if name == RECORD_KEY else rows.rows.column(name)).take(indices)
            for name in columns
        }
    )
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in columns])
    return np.asarray(places[order.to_numpy()])


def _check_columns(rows: KeyedRows, columns: Sequence[str]) -> None:
    for name in columns:
        if name != RECORD_KEY and name not in rows.rows.column_names:
            raise InvalidRequest(
                "unknown_column",
                what=f"The rows have no column {name!r} to sort by.",
                why=f"They have {', '.join(rows.rows.column_names)}.",
                now="Name one of them, or _hoodie_record_key.",
                column=name,
            )
