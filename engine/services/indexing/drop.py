"""Dropping indexes, and the metadata table as a whole.

An index may be dropped at any time, as long as no attempt brings it back. So nothing may be under
way that started with the index. The one exception is the building of the index itself, which ends
here.
"""

from collections.abc import Iterator
from functools import partial

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.drop import drop_metadata_table, drop_partitions
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.sizes import sizes_of
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
)
from lakewarden.engine.services.indexing.build import refuse_busy
from lakewarden.engine.services.indexing.index_views import (
    IndexDropped,
    known_indexes,
    pending_builds,
)
from lakewarden.engine.services.indexing.refusals import no_index
from lakewarden.engine.services.indexing.request import keep_scope
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.table.versions import has_metadata_written
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope


def drop_index(
    context: Context, name: str, *, if_exists: bool = False, dry_run: bool = False
) -> IndexDropped:
    """Drop an index, built by any engine, by its name or by that of its partition."""
    found = retrying_view(
        partial(load_for_writing, context), lambda seen: _found(seen, name, if_exists=if_exists)
    )
    if found is None:
        return _absent(name)
    index, partitions, freed = found
    if dry_run:
        return _dropped(index, partitions, freed, "would go", is_changed=False)
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        builds = _builds(context, snapshot, partitions)
        if index.partition not in snapshot.config.metadata_partitions:
            _cancel_builds(context, held, snapshot, builds)
            return _dropped(index, partitions, freed, "is gone", is_changed=True)
        refuse_busy(context, snapshot, but=builds)
        held.assert_held()
        keep_scope(context.storage, snapshot.config, partitions)
        drop_partitions(context.storage, snapshot.config, partitions, snapshot.times)
        _end_builds(context, snapshot, builds)
    return _dropped(index, partitions, freed, "is gone", is_changed=True)


def drop_metadata(context: Context, *, dry_run: bool = False) -> tuple[str, ...]:
    """Drop the metadata table; readers list the storage from then on. What it had."""
    snapshot = load_for_writing(context, publishes=False)
    had = snapshot.config.metadata_partitions
    if dry_run or not had:
        return had
    if has_metadata_written(snapshot.config):
        recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context, publishes=False)
        builds = _builds(context, snapshot, None)
        refuse_busy(context, snapshot, but=builds)
        held.assert_held()
        keep_scope(context.storage, snapshot.config, snapshot.config.metadata_partitions)
        drop_metadata_table(context.storage, snapshot.config)
        _end_builds(context, snapshot, builds)
    return had


def _found(
    snapshot: Snapshot, name: str, *, if_exists: bool
) -> tuple[IndexDefinition, tuple[str, ...], int] | None:
    """An index, the partitions that go with it, and their size."""
    index = _index(snapshot, name)
    if index is None:
        if not if_exists:
            raise no_index(name, [one.name for one in known_indexes(snapshot)])
        return None
    partitions = _with_dependants(snapshot, index)
    return index, partitions, sum(_bytes(snapshot, one) for one in partitions)


def _index(snapshot: Snapshot, name: str) -> IndexDefinition | None:
    """The index by what users call it, else by its partition."""
    known = known_indexes(snapshot)
    by_name = (one for one in known if one.name == name)
    return next(by_name, next((one for one in known if one.partition == name), None))


def _with_dependants(snapshot: Snapshot, index: IndexDefinition) -> tuple[str, ...]:
    """The partitions that go with an index: those that are made from it."""
    others = [one for one in known_indexes(snapshot) if one.partition != index.partition]
    if index.partition == RECORD_INDEX:
        for other in others:
            if other.partition.startswith(SECONDARY_INDEX_PREFIX):
                raise _needed(index.name, other.name)
    if index.partition == COLUMN_STATS and any(one.partition == PARTITION_STATS for one in others):
        return (COLUMN_STATS, PARTITION_STATS)
    return (index.partition,)


def _bytes(state: Snapshot, partition: str) -> int:
    sizes = sizes_of(state.metadata, partition)
    return sizes.base_bytes + sizes.log_bytes


def _builds(
    context: Context, snapshot: Snapshot, partitions: tuple[str, ...] | None
) -> frozenset[str]:
    """The pending instants that build some partitions, or any without a choice."""
    pending = pending_builds(snapshot)
    return frozenset(
        instant.requested
        for partition, instant in pending.items()
        if partitions is None or partition in partitions
    )


def _cancel_builds(
    context: Context, held: HeldLock, snapshot: Snapshot, builds: frozenset[str]
) -> None:
    """End the builds of an index that is not ready; a builder that is alive stops by itself."""
    for files in _cancel_each(context, snapshot, builds):
        end_build(context, held, snapshot, files)


def _end_builds(context: Context, snapshot: Snapshot, builds: frozenset[str]) -> None:
    """Take building instants off the timeline: an indexer that is alive finds its own gone."""
    for files in _cancel_each(context, snapshot, builds):
        for file in (files.inflight, files.requested):
            if file is not None:
                context.storage.delete(file.entry.path)


def _cancel_each(
    context: Context, snapshot: Snapshot, builds: frozenset[str]
) -> Iterator[InstantFiles]:
    """The files of builds whose ledgers say that they ended: no write gets their time again."""
    for files in snapshot.timeline.active.files:
        instant = files.instant.requested
        if instant in builds and files.started_as is Action.INDEXING:
            ledger = snapshot.ledger(instant)
            reason = "Its index was dropped."
            append_cancelled(context, ledger, Action.INDEXING, PlanScope(), reason=reason)
            yield files


def _dropped(
    index: IndexDefinition, partitions: tuple[str, ...], freed: int, verb: str, *, is_changed: bool
) -> IndexDropped:
    with_it = f" together with {', '.join(partitions[1:])}" if partitions[1:] else ""
    return IndexDropped(
        name=index.name,
        partition=index.partition,
        freed_bytes=freed,
        is_changed=is_changed,
        message=f"The index {index.name} {verb}{with_it}.",
    )


def _absent(name: str) -> IndexDropped:
    return IndexDropped(
        name=name,
        partition=None,
        freed_bytes=0,
        is_changed=False,
        message=f"The table has no index {name}; nothing to do.",
    )


def _needed(name: str, other: str) -> InvalidRequest:
    return InvalidRequest(
        "index_is_needed",
        what=f"Lakewarden cannot drop the index {name}.",
        why=f"The secondary index {other} needs it.",
        now=f"Drop {other} first.",
        index=name,
        needed_by=other,
    )
