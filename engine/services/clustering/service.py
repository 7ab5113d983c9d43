"""The clustering service: drafts plans for small files, and executes plans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringPlan,
    ClusteringStrategy,
    decode_plan,
)
from lakewarden.engine.index.settings import identity_of
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.writing.writer import refuse_unmaintained
from lakewarden.engine.services.clustering.order import RowOrder
from lakewarden.engine.services.clustering.plan import (
    ClusterGroup,
    ClusteringLimits,
    PartitionFilter,
    plan_bytes,
    select_groups,
)
from lakewarden.engine.services.clustering.run import ClusteringWork as ClusteringRun
from lakewarden.engine.services.clustering.run import with_nan_notes
from lakewarden.engine.services.clustering.settings import (
    COPIED_ROWS_MIN,
    EXECUTION,
    FILTER_MODE,
    GROUP_BYTES_MAX,
    GROUPS_MAX,
    INLINE_MAX_COMMITS,
    LAYOUT,
    SAMPLE_SIZE,
    SELECTED,
    SMALL_FILE_LIMIT,
    SORT_COLUMNS,
    SORTED_TOGETHER_BYTES,
    STRATEGY,
    TAKES_SINGLE,
    TARGET_FILE_BYTES,
    FilterMode,
    LayoutStrategy,
    PlanStrategy,
    check_execution,
    listed,
    plan_strategy,
)
from lakewarden.engine.services.clustering.tasks import (
    ClusterSpec,
    ClusterTask,
    KnownFiles,
    cluster_tasks,
    consumed_files,
)
from lakewarden.engine.services.execution.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.planning.plan_request import (
    Draft,
    Drafted,
    PlanRequest,
    Reason,
    Refusal,
    Selection,
    Skipped,
    held_groups,
    untouched,
    with_partition_filter,
    within,
)
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context, Service, is_cancellable
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.transaction.window.window import Window, find_window
from lakewarden.engine.write.files.spec import WrittenFile
from lakewarden.engine.write.routing.sizes import MAX_FILE_SIZE
from lakewarden.engine.write.rows.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec


class Clustering:
    """Makes large files of small ones, and sorts their rows if asked for."""

    @property
    def service(self) -> Service:
        return Service.CLUSTERING

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none."""
        _refuse(snapshot, context.settings)
        refusal = _not_due(context, snapshot, plan_request)
        if refusal is not None:
            return refusal
        strategy = plan_strategy(context.settings[STRATEGY])
        executed = executed_by(snapshot, context.settings)
        limits = _limits(context.settings, strategy, plan_request)
        # A file that is taken alone would be taken again and again.
        window = find_window(
            context, snapshot, Service.CLUSTERING, limits.rules, takes_own=not limits.takes_single
        )
        if (nothing := untouched(Service.CLUSTERING, window)) is not None and not _named(
            context.settings, plan_request
        ):
            return nothing
        partitions = self._partitions(context, snapshot, window, strategy, plan_request)
        slices = _slices(snapshot, partitions.chosen)
        groups = select_groups(slices, held_groups(snapshot), limits)
        selection = Selection(groups.chosen, (*partitions.skipped, *groups.skipped))
        if not selection.chosen:
            return _nothing(selection)
        cancellable = is_cancellable(context.settings, Service.CLUSTERING, plan_request.cancellable)
        members = [slice_ for group in selection.chosen for slice_ in group.slices]
        return Draft(
            content=plan_bytes(
                context.storage,
                selection.chosen,
                executed,
                new_base_bytes=limits.new_base_bytes,
                missing_partitions=selection.missing_partitions,
                extra={CANCELLABLE_KEY: str(cancellable).lower()},
            ),
            groups=frozenset(slice_.key for slice_ in members),
            missing_partitions=selection.missing_partitions,
            skipped=selection.skipped,
            input_bytes=sum(slice_.size_bytes for slice_ in members),
            scope=window.why,
            rules=limits.rules,
        )

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        """Make the files that a plan asks for; it may be one of Java's."""
        requested = decode_plan(plan, f"the plan of {attempt.instant}")
        planned = requested.clustering_plan or ClusteringPlan()
        state = load_snapshot(context.storage)
        _refuse(state, context.settings)
        spec = _spec(state, context, attempt, planned.strategy or ClusteringStrategy())
        tasks = cluster_tasks(
            planned.input_groups,
            _known(state, planned),
            context.ports.ids,
            is_sorted=spec.order.is_sorted,
        )
        tasks = with_nan_notes(state, spec.write, tasks)
        files = tuple(_files(context, attempt, spec, tasks))
        consumed = consumed_files(planned.input_groups)
        work = Work(
            operation=Operation.CLUSTER,
            files=files,
            consumed=consumed,
            replaced=_replaced(consumed),
        )
        return outcome_of(state, attempt, work)

    def _partitions(
        self,
        context: Context,
        state: Snapshot,
        window: Window,
        strategy: PlanStrategy,
        plan_request: PlanRequest,
    ) -> Selection[str]:
        """The partitions to look into; those that are named need not have changed."""
        names = changed = window.partitions
        named = _named(context.settings, plan_request)
        mode = strategy.mode or FilterMode(context.settings[FILTER_MODE])
        if names is None or changed is None or named or mode.ranks:
            every = state.source(use_metadata=True).partitions()
            there = (name for name in named if name in every)
            changed = every if changed is None else tuple(sorted({*changed, *there}))
            names = every if mode.ranks else changed
        filter_ = PartitionFilter.of(
            context.settings,
            mode,
            wished=with_partition_filter(plan_request, state, names).partitions,
            hour=state.config.layout.zone.wall(context.now_ms()).hour,
        )
        return within(filter_.choose(names), changed)


CLUSTERING = Clustering()


def _named(settings: Settings, plan_request: PlanRequest) -> tuple[str, ...]:
    """The partitions that are asked for by name."""
    return (*listed(settings[SELECTED]), *(plan_request.partitions or ()))


def executed_by(state: Snapshot, settings: Settings) -> ClusteringStrategy:
    """How a new plan is to be executed, in Java's words."""
    columns = listed(settings[SORT_COLUMNS])
    _check_sort_columns(state, columns)
    check_execution(settings[EXECUTION])
    parameters = {SORT_COLUMNS.key: ",".join(columns)} if columns else {}
    layout = settings[LAYOUT]
    if columns and layout != LayoutStrategy.LINEAR:
        # Java asks its own settings for that; a plan of ours says it for us.
        parameters[LAYOUT.key] = layout
    return ClusteringStrategy(strategy_class_name=settings[EXECUTION], strategy_params=parameters)


def _spec(
    state: Snapshot, context: Context, attempt: Attempt, strategy: ClusteringStrategy
) -> ClusterSpec:
    check_execution(strategy.strategy_class_name)
    parameters, settings = strategy.strategy_params, context.settings
    columns = listed(parameters.get(SORT_COLUMNS.key, ""))
    _check_sort_columns(state, columns)
    layout = parameters.get(LAYOUT.key, settings[LAYOUT])
    write = write_spec(
        state,
        schema_at(state, attempt),
        settings,
        instant=attempt.instant,
        attempt=attempt.number,
    )
    return ClusterSpec(
        write=write,
        order=RowOrder(columns, LayoutStrategy(layout.upper()), settings[SAMPLE_SIZE]),
        copied_rows_min=settings[COPIED_ROWS_MIN],
        sorted_together_bytes=settings[SORTED_TOGETHER_BYTES],
    )


def _check_sort_columns(state: Snapshot, columns: Sequence[str]) -> None:
    names = state.schema().columns.names
    strangers = [name for name in columns if name not in names]
    if strangers:
        raise InvalidRequest(
            "unknown_sort_column",
            what=f"Clustering cannot sort by {strangers[0]!r}.",
            why=f"The table has the columns {', '.join(names)}.",
            now=f"Correct {SORT_COLUMNS.key}.",
            column=strangers[0],
        )


def _files(
    context: Context, attempt: Attempt, spec: ClusterSpec, tasks: Sequence[ClusterTask]
) -> Iterator[WrittenFile]:
    """The new files, several tasks at once; few of them share the cores."""
    executor = context.ports.executor
    threads = max(executor.workers // max(len(tasks), 1), 1)
    spec = replace(spec, write=replace(spec.write, threads=threads))
    work = FencedTask(FencedTaskContext.here(context.storage, attempt), ClusteringRun(spec))
    attempt.tell("cluster", total=len(tasks))
    size_bytes = 0
    for done, made in enumerate(executor.map(work, tasks), start=1):
        attempt.assert_mine()
        size_bytes += sum(file.file.size_bytes for file in made)
        attempt.tell("cluster", done=done, total=len(tasks), bytes_done=size_bytes)
        yield from made


def _known(state: Snapshot, plan: ClusteringPlan) -> KnownFiles:
    """The files of the plan's partitions, by name."""
    partitions = {one.partition_path or "" for group in plan.input_groups for one in group.slices}
    found = state.source(use_metadata=True).files(tuple(sorted(partitions)))
    return {name: {file.name: file for file in files} for name, files in found.items()}


def _replaced(consumed: Mapping[FileGroupId, object]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for key in sorted(consumed):
        found.setdefault(key.partition, []).append(key.file_id)
    return {partition: tuple(file_ids) for partition, file_ids in found.items()}


def _refuse(state: Snapshot, settings: Settings) -> None:
    """Refuse tables that we can't cluster."""
    refuse_unwritable(state.config)
    refuse_unmaintained(state.storage, state.config)
    if identity_of(state, settings).buckets is not None:
        raise InvalidRequest(
            "unsupported_clustering_of_buckets",
            what="Lakewarden cannot cluster a table with a bucket index.",
            why="The hash of a key decides its file group, so no row may move.",
            now="Compact it instead, or rewrite it with another index.",
        )


def _not_due(context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Refusal | None:
    """Why a clustering has to wait; an explicit request does not."""
    if not plan_request.honour_trigger:
        return None
    wanted = context.settings[INLINE_MAX_COMMITS]
    since = commits_since_clustering(snapshot.timeline.active)
    if since >= wanted:
        return None
    return Refusal(
        service=Service.CLUSTERING,
        reason=Reason.TRIGGER_NOT_REACHED,
        why=f"It waits for {wanted} commits since the last clustering; there are {since}.",
    )


def commits_since_clustering(active: ActiveTimeline) -> int:
    """Commits requested after the newest clustering, pending or completed."""
    newest = ""
    for instant in active.instants:
        files = active.files_of(instant)
        if files is not None and files.started_as is Action.CLUSTERING:
            newest = max(newest, instant.requested)
    writes = active.completed((Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT))
    return sum(instant.requested > newest for instant in writes)


def _limits(
    settings: Settings, strategy: PlanStrategy, plan_request: PlanRequest
) -> ClusteringLimits:
    return ClusteringLimits(
        small_file_bytes=settings[SMALL_FILE_LIMIT],
        target_file_bytes=settings[TARGET_FILE_BYTES],
        group_bytes_max=settings[GROUP_BYTES_MAX],
        groups_max=settings[GROUPS_MAX],
        takes_single=bool(listed(settings[SORT_COLUMNS])) or settings[TAKES_SINGLE],
        is_file_by_file=strategy.is_file_by_file,
        new_base_bytes=settings[MAX_FILE_SIZE],
        plan_request=plan_request,
    )


def _slices(state: Snapshot, partitions: Sequence[str]) -> tuple[FileSlice, ...]:
    """The newest slices of some partitions, in the order of these."""
    if not partitions:
        return ()
    groups = state.file_groups(state.visibility(), tuple(partitions), use_metadata=True)
    place = {name: number for number, name in enumerate(partitions)}
    slices = (group.latest_merged() for group in groups)
    return tuple(sorted(slices, key=lambda one: (place[one.partition], one.file_id)))


def _nothing(selection: Selection[ClusterGroup]) -> Refusal:
    """Why nothing was chosen: what most of the table has to wait for."""
    reasons = [one.reason for one in selection.skipped]
    waiting = [one.reason for one in selection.skipped if one.comes_back] or reasons
    reason = max(sorted(set(waiting)), key=waiting.count, default=Reason.NOTHING_TO_DO)
    details: dict[Reason, Skipped] = {one.reason: one for one in selection.skipped}
    example = details.get(reason)
    return Refusal(
        service=Service.CLUSTERING,
        reason=reason,
        why="There are no files to cluster."
        if example is None
        else (
            f"There are no files to cluster. The plan skips {len(selection.skipped)} files or "
            f"partitions, {waiting.count(reason)} of them for this reason: {example.detail}"
        ),
        skipped=selection.skipped,
        missing_partitions=selection.missing_partitions,
    )
