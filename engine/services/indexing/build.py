"""Building indexes while the table is at rest: under its lock, with nothing else under way.

Steps of `metadata-build`: recover, lock, reload, refuse, gather, commits, definitions, properties,
overtaken, unlock. Until `metadata-build.properties` no reader or writer looks at what was made, and
a later build replaces what a crash leaves. An instant that has started or completed by
`metadata-build.overtaken` did so because the lock was lost, and the new partitions lack what it
wrote: then they are dropped again.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.create import add_partitions
from lakewarden.engine.metadata.building.drop import drop_partitions
from lakewarden.engine.metadata.entries.value_types import value_type
from lakewarden.engine.metadata.reading.sizes import sizes_of
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from lakewarden.engine.services.indexing.at_rest import refuse_busy
from lakewarden.engine.services.indexing.gather import gather, newest_write
from lakewarden.engine.services.indexing.index_views import IndexState
from lakewarden.engine.services.indexing.refusals import (
    index_exists,
    no_index,
    no_statistics,
    not_built_yet,
)
from lakewarden.engine.services.indexing.request import IndexRequest, WantedIndex, wanted_index
from lakewarden.engine.services.indexing.result import IndexBuilt
from lakewarden.engine.services.indexing.scope import record_scope
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.loading import load_for_writing, reload_under_lock


def create_index(
    context: Context, request: IndexRequest, *, if_not_exists: bool = False, dry_run: bool = False
) -> IndexBuilt:
    """Build an index on the rows that there are; from then on writes keep it true."""
    snapshot = load_for_writing(context)
    wanted = _wanted(context, snapshot, request)
    if wanted.partition in snapshot.config.metadata_partitions:
        if not if_not_exists:
            raise index_exists(request.name, wanted.partition)
        return _as_it_is(context, snapshot, wanted.partition, "It already exists.")
    if dry_run:
        gather(context, snapshot, [wanted])
        return _would_be(snapshot, wanted.partition, "It would be built.")
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        if wanted.partition in snapshot.config.metadata_partitions:
            raise index_exists(request.name, wanted.partition)
        records = _build(context, held, snapshot, [wanted])
    return _built(context, wanted.partition, records, f"It was built as {wanted.partition}.")


def refresh_index(context: Context, name: str, *, dry_run: bool = False) -> IndexBuilt:
    """Drop an index and build it anew, as it was defined, in one go."""
    snapshot = load_for_writing(context)
    known = {one.partition: one for one in snapshot.definitions}
    index = known.get(name) or next((one for one in known.values() if one.name == name), None)
    if index is None or index.partition == FILES:
        raise no_index(name, list(known))
    if index.partition not in (RECORD_INDEX, COLUMN_STATS, PARTITION_STATS):
        raise not_built_yet(name, index.index_type)
    names = [index.partition]
    if index.partition == COLUMN_STATS and PARTITION_STATS in known:
        names.append(PARTITION_STATS)
    wanted = [
        WantedIndex(
            partition=one,
            columns=known[one].columns if one == COLUMN_STATS else (),
            is_partitioned=known[one].is_partitioned,
        )
        for one in names
    ]
    if dry_run:
        gather(context, snapshot, wanted)
        return _would_be(snapshot, index.partition, "It would be rebuilt.")
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        refuse_busy(context, snapshot)
        held.assert_held()
        drop_partitions(context.storage, snapshot.config, names, snapshot.times, context.ports)
        records = _build(context, held, reload_under_lock(context), wanted)
    return _built(context, index.partition, records, "It was rebuilt.")


def build_metadata_table(
    context: Context, wanted: Sequence[WantedIndex], *, dry_run: bool = False
) -> tuple[str, ...]:
    """Give a table the partitions of a metadata table that it lacks; the names of these."""
    snapshot = load_for_writing(context)
    missing = _missing(snapshot.config, wanted)
    if dry_run or not missing:
        return tuple(one.partition for one in missing)
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        missing = _missing(snapshot.config, wanted)
        _build(context, held, snapshot, missing)
    return tuple(one.partition for one in missing)


def _missing(config: TableConfig, wanted: Sequence[WantedIndex]) -> list[WantedIndex]:
    return [one for one in wanted if one.partition not in config.metadata_partitions]


def _wanted(context: Context, snapshot: Snapshot, request: IndexRequest) -> WantedIndex:
    columns = snapshot.schema().columns
    wanted = wanted_index(request, snapshot.config, columns.names)
    for name in wanted.columns:
        if value_type(columns.field(name).type) is None:
            raise no_statistics(name)
    return wanted


def _build(context: Context, held: HeldLock, snapshot: Snapshot, wanted: list[WantedIndex]) -> int:
    """Steps `metadata-build.refuse` to `metadata-build.overtaken`; the number of records."""
    refuse_busy(context, snapshot)
    gathered = gather(context, snapshot, wanted)
    held.assert_held()
    for one in wanted:
        record_scope(context.storage, snapshot.config, one)
    add_partitions(
        context.storage,
        snapshot.config,
        [one.partition for one in wanted],
        gathered.present,
        snapshot.times,
        context.ports,
        located=gathered.located,
        choices=gathered.choices,
        assert_held=held.assert_held,
    )
    _drop_overtaken(context, snapshot)
    return gathered.records_count


def _drop_overtaken(context: Context, snapshot: Snapshot) -> None:
    """Step `metadata-build.overtaken`."""
    now = load_for_writing(context)
    known = {instant.key for instant in snapshot.timeline.active.instants}
    newer = [one for one in now.timeline.active.instants if one.key not in known]
    if not newer:
        return
    before = snapshot.config.metadata_partitions
    partitions = [one for one in now.config.metadata_partitions if one not in before]
    drop_partitions(context.storage, now.config, partitions, now.times, context.ports)
    raise Conflict(
        "index_overtaken",
        what=f"{', '.join(partitions)} was not built.",
        why=(
            f"This process lost the lock, and the index lacks the {newer[0].action.value} "
            f"{newer[0].requested}, which started since."
        ),
        now="Build the index again.",
        instant=newer[0].requested,
    )


def _as_it_is(context: Context, snapshot: Snapshot, partition: str, message: str) -> IndexBuilt:
    return IndexBuilt(
        name=partition,
        partition=partition,
        state=IndexState.READY,
        indexed_up_to=newest_write(snapshot),
        records_count=None,
        file_groups_count=sizes_of(snapshot.metadata, partition).file_groups_count,
        is_changed=False,
        message=message,
    )


def _would_be(snapshot: Snapshot, partition: str, message: str) -> IndexBuilt:
    return IndexBuilt(
        name=partition,
        partition=partition,
        state=IndexState.READY,
        indexed_up_to=newest_write(snapshot),
        records_count=None,
        file_groups_count=0,
        is_changed=False,
        message=message,
    )


def _built(context: Context, partition: str, records: int, message: str) -> IndexBuilt:
    done = _as_it_is(context, load_for_writing(context), partition, message)
    records_count = records if partition == RECORD_INDEX else None
    return replace(done, records_count=records_count, is_changed=True)
