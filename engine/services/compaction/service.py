"""The compaction service: drafts plans for slices with logs, and executes plans."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lakewarden.engine.file_groups.planned_slices import recorded_logs
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation, decode_plan
from lakewarden.engine.metadata.writing.writer import refuse_unmaintained
from lakewarden.engine.services.compaction.plan import plan_bytes, select_slices
from lakewarden.engine.services.compaction.run import Compacting, CompactionTask
from lakewarden.engine.services.compaction.settings import (
    DELTA_COMMITS,
    DELTA_SECONDS,
    TRIGGER,
    DueCompaction,
    Trigger,
    is_due,
    progress_of,
    reported,
)
from lakewarden.engine.services.execution.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.planning.plan_request import (
    Draft,
    Drafted,
    PlanRequest,
    Reason,
    Refusal,
    Skipped,
    untouched,
)
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig, TableType
from lakewarden.engine.timeline.instants.instant import epoch_ms
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context, Service, is_cancellable
from lakewarden.engine.transaction.window.window import find_window
from lakewarden.engine.write.files.spec import WriteSpec, WrittenFile
from lakewarden.engine.write.rows.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec


class Compaction:
    """Merges logs into new base files."""

    @property
    def service(self) -> Service:
        return Service.COMPACTION

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none."""
        # A refusal is falsy, so that `or` would pass over it.
        for refusal in (_wrong_type(snapshot), _not_due(context, snapshot, plan_request)):
            if refusal is not None:
                return refusal
        _refuse(context.storage, snapshot.config)
        window = find_window(context, snapshot, Service.COMPACTION)
        if (nothing := untouched(Service.COMPACTION, window)) is not None:
            return nothing
        selection = select_slices(context, snapshot, window, plan_request)
        if not selection.chosen:
            return _nothing(selection.skipped, selection.missing_partitions)
        cancellable = is_cancellable(context.settings, Service.COMPACTION, plan_request.cancellable)
        missing = selection.missing_partitions
        return Draft(
            content=plan_bytes(selection.chosen, missing, cancellable=cancellable),
            groups=frozenset(candidate.slice.key for candidate in selection.chosen),
            missing_partitions=missing,
            skipped=selection.skipped,
            input_bytes=sum(candidate.slice.size_bytes for candidate in selection.chosen),
            scope=window.why,
        )

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        """Make the base files that a plan asks for; it may be one of Java's."""
        operations = decode_plan(plan, f"the plan of {attempt.instant}").operations
        state = load_snapshot(context.storage)
        _refuse(state.storage, state.config)
        spec = write_spec(
            state,
            schema_at(state, attempt),
            context.settings,
            instant=attempt.instant,
            attempt=attempt.number,
        )
        tasks = tuple(
            CompactionTask(number, one, recorded_logs(state.recorded, one))
            for number, one in enumerate(operations)
        )
        files = tuple(_files(context, attempt, spec, tasks))
        work = Work(operation=Operation.COMPACT, files=files, consumed=_consumed(operations))
        return outcome_of(state, attempt, work)


COMPACTION = Compaction()


def _files(
    context: Context,
    attempt: Attempt,
    spec: WriteSpec,
    tasks: Sequence[CompactionTask],
) -> Iterator[WrittenFile]:
    """The new base files, several at once; few of them share the cores."""
    executor = context.ports.executor
    threads = max(executor.workers // max(len(tasks), 1), 1)
    work = FencedTask(
        FencedTaskContext.here(context.storage, attempt), Compacting(replace(spec, threads=threads))
    )
    attempt.tell("compact", total=len(tasks))
    size_bytes = 0
    for done, file in enumerate(executor.map(work, tasks), start=1):
        attempt.assert_mine()
        size_bytes += file.file.size_bytes
        attempt.tell("compact", done=done, total=len(tasks), bytes_done=size_bytes)
        yield file


def _consumed(operations: Sequence[CompactionOperation]) -> dict[FileGroupId, frozenset[str]]:
    """The files that the new ones stand for."""
    return {
        FileGroupId(one.partition_path or "", one.file_id or ""): frozenset(
            path.rpartition("/")[2]
            for path in (one.data_file_path, *one.delta_file_paths)
            if path is not None
        )
        for one in operations
    }


def _refuse(storage: Storage, config: TableConfig) -> None:
    """Refuse a table to which files of ours would do harm."""
    refuse_unwritable(config)
    refuse_unmaintained(storage, config)


def _wrong_type(snapshot: Snapshot) -> Refusal | None:
    if snapshot.config.table_type is TableType.MERGE_ON_READ:
        return None
    return Refusal(
        service=Service.COMPACTION,
        reason=Reason.WRONG_TABLE_TYPE,
        why="A copy-on-write table has no logs to merge.",
    )


def _not_due(context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Refusal | None:
    """Why a compaction has to wait; an explicit request does not."""
    if not plan_request.honour_trigger:
        return None
    settings = context.settings
    due = DueCompaction(
        Trigger(settings[TRIGGER]), settings[DELTA_COMMITS], settings[DELTA_SECONDS]
    )
    progress = progress_of(snapshot.timeline.active)
    if progress is None:
        why = "The table has no writes yet."
    else:
        began_ms = epoch_ms(progress.began, snapshot.layout.zone) or 0
        # Java counts whole seconds, too.
        elapsed = context.now_ms() // 1000 - began_ms // 1000
        if is_due(due, progress, elapsed):
            return None
        why = reported(due, progress, elapsed)
    return Refusal(service=Service.COMPACTION, reason=Reason.TRIGGER_NOT_REACHED, why=why)


def _nothing(skipped: tuple[Skipped, ...], missing: tuple[str, ...]) -> Refusal:
    """Why nothing was chosen: what most of that has to wait for which could be."""
    waiting = [one.reason for one in skipped if one.comes_back]
    if not waiting:
        return Refusal(
            service=Service.COMPACTION,
            reason=Reason.NOTHING_TO_DO,
            why="There are no logs to merge.",
            skipped=skipped,
        )
    reason = max(sorted(set(waiting)), key=waiting.count)
    example = next(one for one in skipped if one.reason is reason and one.comes_back)
    return Refusal(
        service=Service.COMPACTION,
        reason=reason,
        why=(
            f"The plan skips {len(waiting)} file groups or partitions with logs, "
            f"{waiting.count(reason)} of them for this reason: {example.detail}"
        ),
        skipped=skipped,
        missing_partitions=missing,
    )
