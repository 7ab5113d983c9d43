"""Scheduling a build: its plan, and all its file groups, under one hold of the lock.

From then on writers report to it, and nothing else of the build has to keep them waiting. What a
hold takes depends on the number of file groups, and not on that of the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.instant_metadata import indexing
from lakewarden.engine.formats.instant_metadata.indexing import IndexPartition, IndexPlan
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.building.create import BuildOptions, in_order
from lakewarden.engine.metadata.building.initialise import (
    begin_initial,
    create_partitions,
    forget_unfinished,
)
from lakewarden.engine.metadata.entries.row_indexes import row_indexes
from lakewarden.engine.metadata.reading.definitions import definitions_path, index_name
from lakewarden.engine.metadata.reading.files import MetadataListing
from lakewarden.engine.metadata.reading.shards import GroupCounts, record_shard, shard_of
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    FILES,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    load_metadata_table,
    metadata_dropped,
)
from lakewarden.engine.metadata.writing.builds import (
    BuildNotes,
    builds_on,
    list_as_building,
    planned_partitions,
    reserved_instants,
    write_notes,
)
from lakewarden.engine.metadata.writing.definitions_file import (
    NewDefinition,
    column_stats_definition,
    define_indexes,
    record_index_definition,
)
from lakewarden.engine.services.indexing.refusals import (
    index_exists,
    needs_record_index,
    unmaintainable,
)
from lakewarden.engine.services.indexing.request import WantedIndex, record_scope
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.table.versions import index_version
from lakewarden.engine.timeline.instants.instant import Action, InstantFiles
from lakewarden.engine.timeline.ledger.ledger import instants_with_ledger
from lakewarden.engine.timeline.timeline import UNDER_WAY
from lakewarden.engine.transaction.attempts.publish import publish_in
from lakewarden.engine.transaction.attempts.take_over import working_attempt
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.rollback.ended_builds import end_build
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import append_cancelled
from lakewarden.engine.transaction.state.plan_scope import PlanScope

# In the extra metadata of a partition's plan: what its definition does not say to Java.
COLUMNS_KEY = "lakewarden.columns"
PARTITIONED_KEY = "lakewarden.isPartitioned"
SUPERSEDED = "Another build took its place."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBuild:
    """A plan that waits for its execution, ours or one that was there already."""

    instant: str
    partitions: tuple[str, ...]
    upto: str
    is_new: bool = True
    # The builds that it took the place of.
    superseded: tuple[str, ...] = ()


def schedule_build(context: Context, wanted: Sequence[WantedIndex]) -> ScheduledBuild:
    """Plan the building of some partitions, in one plan; one that plans the same is handed back.

    Steps of `index-schedule`: recover, lock, reload, refuse, supersede, requested, definitions,
    notes, building, groups, base, unlock. A crash after `index-schedule.requested` leaves a plan;
    its execution makes what is missing.
    """
    recover_failed_instants(context)
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        _refuse_ready(snapshot, wanted)
        _refuse_dropped(snapshot.config, wanted)
        refuse_impossible(context, snapshot, wanted)
        rivals = _rivals(snapshot, wanted)
        same = _same_plan(context, snapshot, rivals, wanted)
        if same is not None:
            return same
        snapshot = _without(context, held, snapshot, rivals)
        notes = publish_build(context, held, snapshot, wanted)
    return ScheduledBuild(
        instant=notes.instant,
        partitions=notes.partitions,
        upto=notes.upto,
        superseded=tuple(files.instant.requested for files in rivals),
    )


def publish_build(
    context: Context, held: HeldLock, snapshot: Snapshot, wanted: Sequence[WantedIndex]
) -> BuildNotes:
    """Steps `index-schedule.requested` to `index-schedule.base`, by a caller that has the lock.

    A build that was ended has left the timeline, and its ledger stays: no time is used twice.
    """
    snapshot.times.move_past(max(instants_with_ledger(context.storage), default=None))
    content = indexing.encode_plan(plan_of(snapshot, wanted))
    published = publish_in(context, held, snapshot, Action.INDEXING, content, claims=False)
    return prepare(context, held, snapshot, published.instant, wanted)


def prepare(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    instant: str,
    wanted: Sequence[WantedIndex],
) -> BuildNotes:
    """Steps `index-schedule.definitions` to `index-schedule.base`, for a plan on the timeline."""
    storage, config = context.storage, snapshot.config
    for one in wanted:
        record_scope(storage, config, one)
    held.assert_held()
    _define(context, snapshot, wanted)
    state = load_metadata_table(storage, config)
    forget_unfinished(state, context.now_ms(), but=reserved_instants(storage))
    state = state.again()
    snapshot.times.move_past(state.timeline.active.newest_time())
    groups = group_counts(context, snapshot, wanted)
    upto, pending = base_of(snapshot)
    notes = BuildNotes(
        instant=instant,
        partitions=tuple(one.partition for one in wanted),
        columns=next((one.columns for one in wanted if one.partition == COLUMN_STATS), ()),
        is_partitioned=any(one.is_partitioned for one in wanted),
        upto=upto,
        pending=pending,
        group_counts={
            f"{partition}/{shard}": count
            for partition, shards in groups.items()
            for shard, count in shards.items()
        },
        groups_instant=begin_initial(state),
        base_instant=begin_initial(state.again()),
    )
    write_notes(storage, notes)
    held.assert_held()
    list_as_building(storage, config, notes.partitions)
    create_partitions(state.again(), notes.groups_instant, groups, snapshot.times)
    return notes


def base_of(snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """The newest completed write before which none is pending, and all that is pending.

    What was pending, whatever it is, and what comes later is caught up with.
    """
    active = snapshot.timeline.active
    pending = active.pending(UNDER_WAY - {Action.INDEXING})
    hole = min((one.requested for one in pending if one.action.is_write), default=None)
    completed = (one.requested for one in active.completed())
    before = [one for one in completed if hole is None or one < hole]
    if not before and hole is not None:
        archived = snapshot.timeline.archive.instants(None, hole)
        before = [one.requested for one in archived if one.requested < hole]
    return max(before, default=""), tuple(sorted(one.requested for one in pending))


def group_counts(
    context: Context, snapshot: Snapshot, wanted: Sequence[WantedIndex]
) -> Mapping[str, Mapping[str, int]]:
    """How many file groups each shard of each partition gets."""
    counts = GroupCounts(context.settings)
    found: dict[str, Mapping[str, int]] = {}
    for one in wanted:
        if one.partition == RECORD_INDEX and one.is_partitioned:
            names = MetadataListing(snapshot.metadata.partition(FILES)).partitions()
            found[one.partition] = {record_shard(name): counts.of_record_shard(0) for name in names}
        else:
            found[one.partition] = {shard_of(one.partition): counts.of_partition(one.partition)}
    return found


def _without(
    context: Context, held: HeldLock, snapshot: Snapshot, rivals: Sequence[InstantFiles]
) -> Snapshot:
    """Step `index-schedule.supersede`: the table as it is then."""
    for files in rivals:
        snapshot = supersede_in(context, held, snapshot, files)
    return snapshot


def supersede_in(
    context: Context, held: HeldLock, snapshot: Snapshot, files: InstantFiles
) -> Snapshot:
    """End another build by a caller that has the lock: its ledger first, then all it has made.

    The answer is the table then.
    """
    instant = files.instant.requested
    ledger = snapshot.ledger(instant)
    append_cancelled(context, ledger, Action.INDEXING, PlanScope(), reason=SUPERSEDED)
    names = planned_partitions(snapshot.timeline.active, files)
    end_build(context, held, snapshot, files, with_ready=tuple(names))
    return reload_under_lock(context)


def wanted_of(snapshot: Snapshot, files: InstantFiles) -> list[WantedIndex]:
    """What a plan asks for, ours or Java's."""
    known = {one.partition: one for one in snapshot.definitions}
    wanted = []
    for name, info in planned_partitions(snapshot.timeline.active, files).items():
        defined, extra = known.get(name), info.extra_metadata
        columns = tuple(filter(None, extra.get(COLUMNS_KEY, "").split(",")))
        is_partitioned = extra.get(PARTITIONED_KEY) == "true"
        if defined is not None:
            columns = columns or (defined.columns if name == COLUMN_STATS else ())
            is_partitioned = is_partitioned or defined.is_partitioned
        is_named = name.startswith((SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX))
        record = snapshot.stored_definitions.records.get(name) if is_named else None
        wanted.append(
            WantedIndex(
                partition=name,
                columns=columns,
                is_partitioned=is_partitioned,
                definition=None if record is None else NewDefinition(name, record),
            )
        )
    return wanted


def plan_of(snapshot: Snapshot, wanted: Sequence[WantedIndex]) -> IndexPlan:
    """The plan for the timeline, which Java can carry out as well."""
    upto, _ = base_of(snapshot)
    return IndexPlan(
        index_partition_infos=tuple(
            IndexPartition(
                metadata_partition_path=one.partition,
                index_upto_instant=upto,
                extra_metadata={
                    COLUMNS_KEY: ",".join(one.columns),
                    PARTITIONED_KEY: str(one.is_partitioned).lower(),
                },
            )
            for one in wanted
        )
    )


def _define(context: Context, snapshot: Snapshot, wanted: Sequence[WantedIndex]) -> None:
    """Step `index-schedule.definitions`."""
    definitions = []
    for one in wanted:
        if one.partition == COLUMN_STATS:
            version = index_version(snapshot.config)
            definitions.append(column_stats_definition(one.columns, version=version))
        elif one.partition == RECORD_INDEX:
            definitions.append(record_index_definition(is_partitioned=one.is_partitioned))
        elif one.definition is not None:
            definitions.append(one.definition)
    if definitions:
        path = definitions_path(snapshot.config)
        define_indexes(context.storage, path, definitions)
        if snapshot.config.index_definitions_path is None:
            update_properties(context.storage, {"hoodie.table.index.defs.path": path})


def refuse_impossible(context: Context, snapshot: Snapshot, wanted: Sequence[WantedIndex]) -> None:
    """Refuse partitions that cannot be made of what the table has, or not be kept true."""
    choices = BuildOptions(
        is_record_index_partitioned=any(one.is_partitioned for one in wanted),
        definitions=tuple(one.definition for one in wanted if one.definition is not None),
    )
    names = [one.partition for one in wanted]
    in_order(context.storage, snapshot.config, names, choices)
    for definition in choices.definitions:
        _refuse_unkept(context, snapshot, definition)


def _refuse_unkept(context: Context, snapshot: Snapshot, wanted: NewDefinition) -> None:
    """Refuse what no write could maintain: from its plan on, every write would be refused."""
    try:
        row_indexes([wanted.parsed()], snapshot.schema().columns, context.settings)
    except InvalidRequest as error:
        raise unmaintainable(wanted, error.why) from None


def _refuse_dropped(config: TableConfig, wanted: Sequence[WantedIndex]) -> None:
    """Refuse to plan on what others have dropped since the request was checked."""
    if not config.metadata_partitions:
        raise metadata_dropped()
    names = [one.partition for one in wanted]
    secondary = next((one for one in names if one.startswith(SECONDARY_INDEX_PREFIX)), None)
    if secondary and RECORD_INDEX not in (*names, *config.metadata_partitions):
        raise needs_record_index(index_name(secondary), config)


def _refuse_ready(snapshot: Snapshot, wanted: Sequence[WantedIndex]) -> None:
    for one in wanted:
        if one.partition in snapshot.config.metadata_partitions:
            raise index_exists(one.partition, one.partition)


def _rivals(snapshot: Snapshot, wanted: Sequence[WantedIndex]) -> list[InstantFiles]:
    """The pending builds of one of the partitions."""
    names = {one.partition for one in wanted}
    return [files for files, planned in builds_on(snapshot.timeline.active) if names & {*planned}]


def _same_plan(
    context: Context,
    snapshot: Snapshot,
    rivals: Sequence[InstantFiles],
    wanted: Sequence[WantedIndex],
) -> ScheduledBuild | None:
    """The plan that is there for just this; refuses where another one is being carried out.

    One of Java's that has started is never resumed, since nothing tells which of its files are
    whole.
    """
    for files in rivals:
        instant, ledger = files.instant.requested, snapshot.ledger(files.instant.requested)
        is_javas = ledger.last_claim is None and files.inflight is not None
        is_same = sorted(map(_what, wanted_of(snapshot, files))) == sorted(map(_what, wanted))
        if is_same and not is_javas:
            upto, _ = base_of(snapshot)
            names = tuple(one.partition for one in wanted)
            return ScheduledBuild(instant=instant, partitions=names, upto=upto, is_new=False)
        live = working_attempt(context, ledger, files)
        if live is not None:
            raise _being_built(instant, str(live))
    return None


def _what(one: WantedIndex) -> tuple[str, tuple[str, ...], bool, str]:
    defined = "" if one.definition is None else repr(sorted(one.definition.record.items()))
    return one.partition, tuple(sorted(one.columns)), one.is_partitioned, defined


def _being_built(instant: str, builder: str) -> Conflict:
    return Conflict(
        "index_being_built",
        what="The index was not scheduled.",
        why=f"{builder} is building another one in its place, by the plan {instant}.",
        now=f"Wait until it ends, or cancel it: CALL cancel_plan(instant => '{instant}').",
        instant=instant,
    )
