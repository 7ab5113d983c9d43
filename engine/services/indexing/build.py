"""Building indexes: beside writers where the table has a metadata table, by a plan.

A table without one gets it while it is at rest, before its first index. Steps of `metadata-build`:
recover, lock, reload, refuse, gather, commits, definitions, properties, overtaken, unlock. Until
`metadata-build.properties` no reader or writer looks at what was made, and a later build replaces
what a crash leaves. An instant that has started or completed by `metadata-build.overtaken` did so
because the lock was lost, and the new partitions lack what it wrote: then they are dropped again.

At rest: an index comes and goes while no write or started plan is pending on the table.

An attempt that started before has gathered no statistics and keys for a new index, and its commit
would make the index untrue. Plans that no attempt has started do no harm: they are executed with
the indexes of that time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
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
from lakewarden.engine.metadata.writing.builds import BuildDone, builds_on
from lakewarden.engine.metadata.writing.definitions_file import NewDefinition
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.services.indexing.gather import gather, newest_write, statistics_columns
from lakewarden.engine.services.indexing.index_views import IndexBuilt, IndexState
from lakewarden.engine.services.indexing.present import has_renamed_columns
from lakewarden.engine.services.indexing.refresh import can_swap, refresh_ready
from lakewarden.engine.services.indexing.refusals import (
    UNDONE,
    UNKNOWN,
    index_exists,
    no_index,
    no_statistics,
    renamed_columns,
)
from lakewarden.engine.services.indexing.request import (
    IndexRequest,
    WantedIndex,
    record_scope,
    wanted_index,
)
from lakewarden.engine.services.indexing.run_build import pending_indexing, run_build
from lakewarden.engine.services.indexing.schedule_build import refuse_impossible, schedule_build
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context, load_for_writing, reload_under_lock
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    pending_instants,
    service_name,
)

_PLANS = frozenset(
    {
        Action.COMPACTION,
        Action.LOG_COMPACTION,
        Action.CLUSTERING,
        Action.CLEAN,
        Action.INDEXING,
    }
)


def refuse_busy(context: Context, snapshot: Snapshot, *, but: frozenset[str] = frozenset()) -> None:
    """Refuse while something is under way, but for some instants that do not count."""
    for pending in pending_instants(context, snapshot):
        if pending.requested in but or _is_waiting(pending):
            continue
        if pending.action is Action.SAVEPOINT:
            # It keeps files, and has nothing to say to an index.
            continue
        name = service_name(pending.action)
        raise Conflict(
            "table_busy",
            what=f"The {name} {pending.requested} has not ended ({pending.state.value}).",
            why="It started before the index change and would leave the new index incomplete.",
            now=(
                "Wait until it ends, then try again. CALL show_plans shows its worker, CALL "
                "show_blockers how to end it."
            ),
            instant=pending.requested,
        )


def _is_waiting(pending: Pending) -> bool:
    """Whether it is a plan that will be started with anew; what Java left may still be alive."""
    if pending.action not in _PLANS:
        return False
    if pending.state is InstantState.REQUESTED:
        return True
    is_ours = pending.ledger.last_claim is not None
    return is_ours and pending.state is InstantState.INFLIGHT_ABANDONED


# A rollback or restore ends a build; nothing else that happens beside it does.
_BUILDS_MAX = 3


def create_index(
    context: Context, request: IndexRequest, *, if_not_exists: bool = False, dry_run: bool = False
) -> IndexBuilt:
    """Build an index on the rows that there are, beside writers; from then on it is kept true."""
    snapshot, wanted = retrying_view(
        partial(load_for_writing, context), lambda seen: (seen, _wanted(context, seen, request))
    )
    if wanted.partition in snapshot.config.metadata_partitions:
        if not if_not_exists:
            raise index_exists(request.name, wanted.partition)
        return _as_it_is(context, wanted.partition, "It already exists.")
    refuse_impossible(context, snapshot, [wanted])
    if dry_run:
        gather(context, snapshot, [wanted])
        return _would_be(snapshot, wanted.partition, "It would be built.")
    if not snapshot.config.metadata_partitions:
        # The lock is held for the table's files alone, however many rows there are.
        build_metadata_table(context, [WantedIndex(partition=FILES)])
    recover_failed_instants(context)
    # A build that had committed and was not published is ready now.
    snapshot = load_for_writing(context)
    if if_not_exists and wanted.partition in snapshot.config.metadata_partitions:
        return _as_it_is(context, wanted.partition, "It already exists.")
    return _beside_writers(context, [wanted], f"It was built as {wanted.partition}.")


def build_index(
    context: Context, request: IndexRequest, operation: str, *, dry_run: bool = False
) -> IndexBuilt:
    """Build an index at once or in steps; resuming is executing what was scheduled."""
    match operation:
        case "schedule" if not dry_run:
            return _schedule(context, request)
        case "execute" | "resume" if not dry_run:
            return _execute(context, request)
        case "schedule" | "execute" | "resume" | "scheduleAndExecute":
            return create_index(context, request, if_not_exists=True, dry_run=dry_run)
    raise InvalidRequest(
        "bad_argument",
        what=f"An index cannot be built by the operation {operation!r}.",
        why="It must be one of schedule, execute, resume and scheduleAndExecute.",
        now="Give one of these.",
        argument="op",
    )


def _schedule(context: Context, request: IndexRequest) -> IndexBuilt:
    """Plan an index, which writes report to from then on."""
    snapshot = load_for_writing(context)
    wanted = _wanted(context, snapshot, request)
    if wanted.partition in snapshot.config.metadata_partitions:
        return _as_it_is(context, wanted.partition, "It already exists.")
    if not snapshot.config.metadata_partitions:
        raise _no_metadata_table(request.name)
    plan = schedule_build(context, [wanted])
    word = "It is planned" if plan.is_new else "It was planned before"
    built = _as_it_is(context, wanted.partition, f"{word}, at {plan.instant}.")
    return replace(
        built,
        state=IndexState.PLANNED,
        instant=plan.instant,
        indexed_up_to=plan.upto or None,
        is_changed=plan.is_new,
    )


def _execute(context: Context, request: IndexRequest) -> IndexBuilt:
    """Carry out, or resume, the plan of an index that was scheduled before."""
    snapshot = load_for_writing(context)
    partition = _wanted(context, snapshot, request).partition
    if partition in snapshot.config.metadata_partitions:
        return _as_it_is(context, partition, "It already exists.")
    for files, names in builds_on(snapshot.timeline.active):
        if partition in names:
            done = run_build(context, files.instant.requested)
            return _finished(context, partition, done, f"It was built as {partition}.")
    raise _no_plan(request.name)


def run_pending_builds(context: Context, workers: Executor | None = None) -> tuple[BuildDone, ...]:
    """Carry out the pending plans, oldest first, but for those that others end meanwhile."""
    done = []
    for instant in pending_indexing(load_for_writing(context)):
        try:
            done.append(run_build(context, instant, workers))
        except InvalidRequest as error:
            if error.code != UNKNOWN:
                raise
    return tuple(done)


def refresh_index(context: Context, name: str, *, dry_run: bool = False) -> IndexBuilt:
    """Build an index anew as it was defined, beside writers; reads use the old one meanwhile.

    One that is not ready, or lacks file groups, is dropped first.
    """
    snapshot = load_for_writing(context)
    known = {one.partition: one for one in snapshot.definitions}
    index = known.get(name) or next((one for one in known.values() if one.name == name), None)
    if index is None or index.partition == FILES:
        raise no_index(name, list(known))
    names = [index.partition]
    if index.partition == COLUMN_STATS and PARTITION_STATS in known:
        names.append(PARTITION_STATS)
    records = snapshot.stored_definitions.records
    wanted = [
        WantedIndex(
            partition=one,
            columns=known[one].columns if one == COLUMN_STATS else (),
            is_partitioned=known[one].is_partitioned,
            definition=NewDefinition(one, records[one]) if one in records else None,
        )
        for one in names
    ]
    if dry_run:
        return _would_be(snapshot, index.partition, "It would be rebuilt.")
    recover_failed_instants(context)
    if retrying_view(partial(load_for_writing, context), partial(can_swap, partitions=names)):
        done = _repeated(lambda: refresh_ready(context, names))
        return _finished(context, index.partition, done, "It was rebuilt.")
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        held.assert_held()
        drop_partitions(context.storage, snapshot.config, names, snapshot.times)
    return _beside_writers(context, wanted, "It was rebuilt.")


def _beside_writers(context: Context, wanted: Sequence[WantedIndex], message: str) -> IndexBuilt:
    """Schedule and carry out."""
    done = _repeated(lambda: run_build(context, schedule_build(context, wanted).instant))
    return _finished(context, wanted[0].partition, done, message)


def _repeated(build: Callable[[], BuildDone]) -> BuildDone:
    """A build, made again if a rollback or restore takes away what was read."""
    for _ in range(_BUILDS_MAX - 1):
        try:
            return build()
        except Conflict as error:
            if error.code != UNDONE:
                raise
    return build()


def _finished(context: Context, partition: str, done: BuildDone, message: str) -> IndexBuilt:
    built = _as_it_is(context, partition, message)
    return replace(
        built,
        instant=done.instant,
        indexed_up_to=done.upto or None,
        caught_up_to=done.caught_up_to or None,
        records_count=done.records_count if partition == RECORD_INDEX else None,
        is_changed=not done.was_completed_before,
    )


def build_metadata_table(
    context: Context,
    wanted: Sequence[WantedIndex],
    *,
    is_at_rest: bool = False,
    dry_run: bool = False,
) -> tuple[str, ...]:
    """Give a table the partitions of a metadata table that it lacks; the names of these.

    The lock is held for the list of files alone, however many rows there are; indexes are built
    beside writers, statistics first. Of a table at rest all are built under it.
    """
    snapshot = load_for_writing(context)
    missing = _missing(snapshot.config, wanted)
    names = tuple(one.partition for one in missing)
    if dry_run or not missing:
        return names
    rest = [_with_columns(context, snapshot, one) for one in missing if one.partition != FILES]
    refuse_impossible(context, snapshot, rest)
    recover_failed_instants(context)
    _build_missing(context, wanted if is_at_rest else [WantedIndex(partition=FILES)])
    if is_at_rest:
        return names
    of_keys = [one for one in rest if one.partition == RECORD_INDEX]
    for some in ([one for one in rest if one not in of_keys], of_keys):
        if some:
            _beside_writers(context, some, "It was built.")
    return names


def _build_missing(context: Context, wanted: Sequence[WantedIndex]) -> None:
    """Build what is not there yet, under the lock."""
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        missing = _missing(snapshot.config, wanted)
        if missing:
            _build(context, held, snapshot, missing)


def _missing(config: TableConfig, wanted: Sequence[WantedIndex]) -> list[WantedIndex]:
    return [one for one in wanted if one.partition not in config.metadata_partitions]


def _wanted(context: Context, snapshot: Snapshot, request: IndexRequest) -> WantedIndex:
    columns = snapshot.schema().columns
    wanted = wanted_index(request, snapshot.config, columns.names)
    for name in wanted.columns:
        if value_type(columns.field(name).type) is None:
            raise no_statistics(name)
    return _with_columns(context, snapshot, wanted)


def _with_columns(context: Context, snapshot: Snapshot, wanted: WantedIndex) -> WantedIndex:
    """With the columns that statistics are of."""
    if wanted.partition != COLUMN_STATS:
        return wanted
    if has_renamed_columns(snapshot):
        raise renamed_columns(snapshot.config)
    return replace(wanted, columns=statistics_columns(context, snapshot, wanted))


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
    drop_partitions(context.storage, now.config, partitions, now.times)
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


def _as_it_is(context: Context, partition: str, message: str) -> IndexBuilt:
    """What has become of an index, whatever others do meanwhile."""
    return retrying_view(
        partial(load_for_writing, context),
        lambda seen: IndexBuilt(
            name=partition,
            partition=partition,
            state=IndexState.READY,
            indexed_up_to=newest_write(seen),
            records_count=None,
            file_groups_count=sizes_of(seen.metadata, partition).file_groups_count
            if seen.config.metadata_partitions
            else 0,
            is_changed=False,
            message=message,
        ),
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


def _no_metadata_table(name: str) -> InvalidRequest:
    return InvalidRequest(
        "no_metadata_table",
        what=f"The index {name!r} was not scheduled.",
        why="The table has no metadata table, which indexes are part of.",
        now="Create it first: CALL create_metadata_table(...). CREATE INDEX does so by itself.",
        index=name,
    )


def _no_plan(name: str) -> InvalidRequest:
    return InvalidRequest(
        "no_indexing_plan",
        what=f"No plan to build the index {name!r} is pending.",
        why="It was never scheduled, or its build was cancelled.",
        now="Use op => 'scheduleAndExecute'.",
        index=name,
    )
