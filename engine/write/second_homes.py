"""Second homes: a key in another partition, where the record index can tell of one place only."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.index.kinds import KeyScope
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.changes import Located, Removed
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes, row_indexes, unkept_index
from lakewarden.engine.metadata.reading.record_locations import locate_many
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.files.written import WrittenFile

# By what a key stands for one row in: why it is refused, and what to do.
_REFUSALS = {
    KeyScope.PARTITION: (
        "The table's record index has one location per key, but its writes look for keys within"
        " partitions.",
        "Build the index with isPartitioned=true, or call set_index with GLOBAL_SIMPLE.",
    ),
    KeyScope.TABLE: (
        "A key is one row of the whole table, but an overwrite of partitions does not look for keys"
        " in the others.",
        "Upsert the row, or delete it in the other partition first.",
    ),
}


def refuse_second_homes(
    state: Snapshot,
    files: Sequence[WrittenFile],
    index_removals: Sequence[Removed],
    executor: Executor,
    scope: KeyScope,
) -> None:
    """Refuse keys that live in another partition already, or arrive in two at once.

    Readers that trust the index would miss one of the rows. What a write removes makes room.
    """
    left = [Removed(file.left, file.key.partition) for file in files]
    arrived = [Located(file.arrived, file.key) for file in files if len(file.arrived)]
    parts = [one.keys.cast(pa.string()) for one in arrived]
    keys = pa.concat_arrays([pa.array([], pa.string()), *parts])
    if not len(keys):
        return
    distinct = keys.unique()
    if len(distinct) < len(keys):
        homes: dict[str, set[str]] = {}
        for one in arrived:
            for key in one.keys.to_pylist():
                homes.setdefault(key, set()).add(one.home.partition)
        _refuse(next((key for key, some in homes.items() if len(some) > 1), None), scope)
    found = locate_many(state.metadata.record_index(), distinct, executor)
    for partition in sorted({home.partition for home in found.homes}):
        is_there = np.array([home.partition == partition for home in found.homes])[found.at]
        there = found.keys.filter(pa.array(is_there))
        for gone in (*left, *index_removals):
            if gone.partition == partition:
                there = there.filter(pc.invert(pc.is_in(there, value_set=gone.keys)))
        for one in arrived:
            if one.home.partition != partition:
                second = one.keys.filter(pc.is_in(one.keys, value_set=there))
                _refuse(second[0].as_py() if len(second) else None, scope)


def kept_indexes(
    state: Snapshot, schema: TableSchema, settings: Settings, scope: KeyScope
) -> RowIndexes:
    """The indexes of rows; refused is one of values where a key may be in several partitions.

    Its entries name a key and no partition: with one of two equal rows the entry of both would go.
    """
    indexes = row_indexes(state.definitions, schema.columns, settings)
    if not indexes.secondary or not state.config.is_partitioned or scope is KeyScope.TABLE:
        return indexes
    defined = {one.partition: one for one in state.definitions}
    of_keys = defined.get(RECORD_INDEX)
    if of_keys is None or of_keys.is_partitioned:
        why = "It names rows by their keys alone, and here a key is one row in each partition."
        raise unkept_index(defined[indexes.secondary[0].partition], why)
    return indexes


def _refuse(key: str | None, scope: KeyScope) -> None:
    if key is None:
        return
    why, now = _REFUSALS[scope]
    raise InvalidRequest(
        "key_in_other_partition",
        what=f"The write would put the key {key!r} in two partitions.",
        why=why,
        now=now,
        key=key,
    )
