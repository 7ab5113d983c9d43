"""Building indexes while the table stands still: under its lock, with nobody at work.

Steps of `index-build`: recover, lock, reload, refuse, gather, commits, definitions, properties,
overtaken, unlock. Until `index-build.properties` nobody looks at what was made, and whatever a
crash leaves is replaced by the next build. What has begun or completed by `index-build.overtaken`
did so without the lock being ours, and has told the new partitions nothing: then they are dropped
again.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.create import add_partitions
from lakewarden.engine.metadata.drop import drop_partitions
from lakewarden.engine.metadata.table import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from lakewarden.engine.metadata.value_types import value_type
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.failed_writes import settle
from lakewarden.engine.plans.moment import look, reload
from lakewarden.engine.services.indexing.at_rest import refuse_busy
from lakewarden.engine.services.indexing.gather import gather, newest_write
from lakewarden.engine.services.indexing.refusals import (
    index_exists,
    no_index,
    no_statistics,
    not_built_yet,
)
from lakewarden.engine.services.indexing.request import IndexRequest, WantedIndex, wanted_index
from lakewarden.engine.services.indexing.result import IndexBuilt
from lakewarden.engine.services.indexing.scope import record_scope
from lakewarden.engine.services.inspection.indexes import IndexState
from lakewarden.engine.services.inspection.metadata_table import sizes_of
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig


def create_index(
    context: Context, request: IndexRequest, *, if_not_exists: bool = False, dry_run: bool = False
) -> IndexBuilt:
    """Build an index on the rows that there are; from then on writes keep it true."""
    moment = look(context)
    wanted = _wanted(context, moment, request)
    if wanted.partition in moment.config.metadata_partitions:
        if not if_not_exists:
            raise index_exists(request.name, wanted.partition)
        return _as_it_is(context, moment, wanted.partition, "It already exists.")
    if dry_run:
        gather(context, moment, [wanted])
        return _would_be(moment, wanted.partition, "It would be built.")
    settle(context)
    with context.lock.hold() as held:
        moment = reload(context)
        if wanted.partition in moment.config.metadata_partitions:
            raise index_exists(request.name, wanted.partition)
        records = _build(context, held, moment, [wanted])
    return _built(context, wanted.partition, records, f"It was built as {wanted.partition}.")


def refresh_index(context: Context, name: str, *, dry_run: bool = False) -> IndexBuilt:
    """Drop an index and build it anew, as it was defined, in one go."""
    moment = look(context)
    known = {one.partition: one for one in moment.definitions}
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
        gather(context, moment, wanted)
        return _would_be(moment, index.partition, "It would be rebuilt.")
    settle(context)
    with context.lock.hold() as held:
        moment = reload(context)
        refuse_busy(context, moment)
        held.assert_held()
        drop_partitions(context.storage, moment.config, names, moment.times, context.ports)
        records = _build(context, held, reload(context), wanted)
    return _built(context, index.partition, records, "It was rebuilt.")


def build_metadata_table(
    context: Context, wanted: Sequence[WantedIndex], *, dry_run: bool = False
) -> tuple[str, ...]:
    """Give a table the partitions of a metadata table that it lacks; the names of these."""
    moment = look(context)
    missing = _missing(moment.config, wanted)
    if dry_run or not missing:
        return tuple(one.partition for one in missing)
    settle(context)
    with context.lock.hold() as held:
        moment = reload(context)
        missing = _missing(moment.config, wanted)
        _build(context, held, moment, missing)
    return tuple(one.partition for one in missing)


def _missing(config: TableConfig, wanted: Sequence[WantedIndex]) -> list[WantedIndex]:
    return [one for one in wanted if one.partition not in config.metadata_partitions]


def _wanted(context: Context, moment: Snapshot, request: IndexRequest) -> WantedIndex:
    columns = moment.schema().columns
    wanted = wanted_index(request, moment.config, columns.names)
    for name in wanted.columns:
        if value_type(columns.field(name).type) is None:
            raise no_statistics(name)
    return wanted


def _build(context: Context, held: HeldLock, moment: Snapshot, wanted: list[WantedIndex]) -> int:
    """Steps `index-build.refuse` to `index-build.overtaken`; how many records were indexed."""
    refuse_busy(context, moment)
    gathered = gather(context, moment, wanted)
    held.assert_held()
    for one in wanted:
        record_scope(context.storage, moment.config, one)
    add_partitions(
        context.storage,
        moment.config,
        [one.partition for one in wanted],
        gathered.present,
        moment.times,
        context.ports,
        located=gathered.located,
        choices=gathered.choices,
        assert_held=held.assert_held,
    )
    _drop_overtaken(context, moment)
    return gathered.records_count


def _drop_overtaken(context: Context, moment: Snapshot) -> None:
    """Step `index-build.overtaken`."""
    now = look(context)
    known = {instant.key for instant in moment.timeline.active.instants}
    newer = [one for one in now.timeline.active.instants if one.key not in known]
    if not newer:
        return
    before = moment.config.metadata_partitions
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


def _as_it_is(context: Context, moment: Snapshot, partition: str, message: str) -> IndexBuilt:
    return IndexBuilt(
        name=partition,
        partition=partition,
        state=IndexState.READY,
        indexed_up_to=newest_write(moment),
        records_count=None,
        file_groups_count=sizes_of(moment, partition).file_groups_count,
        is_changed=False,
        message=message,
    )


def _would_be(moment: Snapshot, partition: str, message: str) -> IndexBuilt:
    return IndexBuilt(
        name=partition,
        partition=partition,
        state=IndexState.READY,
        indexed_up_to=newest_write(moment),
        records_count=None,
        file_groups_count=0,
        is_changed=False,
        message=message,
    )


def _built(context: Context, partition: str, records: int, message: str) -> IndexBuilt:
    done = _as_it_is(context, look(context), partition, message)
    records_count = records if partition == RECORD_INDEX else None
    return replace(done, records_count=records_count, is_changed=True)
