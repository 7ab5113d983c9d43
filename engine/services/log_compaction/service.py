"""Log compaction: many small logs of a file group become one, and the base file stays."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakewarden.engine.file_groups.planned_slices import recorded_logs
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.services.execution.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.log_compaction.counting import count_blocks
from lakewarden.engine.services.log_compaction.overtaking import assert_no_compaction
from lakewarden.engine.services.log_compaction.plan import (
    LogCompactionLimits,
    log_bytes,
    plan_of,
    select_groups,
    sift,
)
from lakewarden.engine.services.log_compaction.run import Folding, FoldTask
from lakewarden.engine.services.log_compaction.settings import BLOCKS_MIN
from lakewarden.engine.services.planning.held_groups import held_groups
from lakewarden.engine.services.planning.in_window import untouched
from lakewarden.engine.services.planning.partition_filter import with_partition_filter
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.selection import Draft, Drafted, Reason, Refusal, Selection
from lakewarden.engine.services.planning.table_service import TableService
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.table.config import TableType
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.service import Service, is_cancellable
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS
from lakewarden.engine.transaction.window.window import find_window
from lakewarden.engine.write.files.written import WrittenFile
from lakewarden.engine.write.rows.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec


class LogCompaction:
    """Drafts log compactions and executes them.

    They wait for nothing but enough blocks, as in Hudi: there are no triggers to honour.
    """

    @property
    def service(self) -> Service:
        return Service.LOG_COMPACTION

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        if snapshot.config.table_type is not TableType.MERGE_ON_READ:
            return _refusal(Reason.WRONG_TABLE_TYPE, "A copy-on-write table has no logs.")
        refuse_unwritable(snapshot.config)
        rules = str(context.settings[BLOCKS_MIN])
        window = find_window(context, snapshot, self.service, rules)
        if (nothing := untouched(self.service, window)) is not None:
            return nothing
        selection = _select(context, snapshot, plan_request, window.partitions)
        if not selection.chosen:
            why = f"No file group has enough blocks in its logs. {window.why}"
            return replace(
                _refusal(Reason.NOTHING_TO_DO, why),
                skipped=selection.skipped,
                missing_partitions=selection.missing_partitions,
            )
        plan = plan_of(
            selection.chosen,
            is_cancellable=is_cancellable(context.settings, self.service, plan_request.cancellable),
            missing_partitions=selection.missing_partitions,
        )
        return Draft(
            content=compaction.encode_plan(plan),
            groups=frozenset(slice_.key for slice_ in selection.chosen),
            missing_partitions=selection.missing_partitions,
            skipped=selection.skipped,
            input_bytes=sum(map(log_bytes, selection.chosen)),
            scope=window.why,
            rules=rules,
        )

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        path = f"the plan of log compaction {attempt.instant}"
        operations = compaction.decode_plan(plan, path).operations
        state = load_snapshot(context.storage)
        spec = write_spec(
            state,
            schema_at(state, attempt),
            context.settings,
            instant=attempt.instant,
            attempt=attempt.number,
        )
        tasks = [
            FoldTask(number, one, recorded_logs(state.recorded, one))
            for number, one in enumerate(operations)
        ]
        files: list[WrittenFile] = []
        fold = FencedTask(FencedTaskContext.here(context.storage, attempt), Folding(spec))
        for file in context.ports.executor.map(fold, tasks):
            files.append(file)
            attempt.assert_mine()
            attempt.tell("fold logs", done=len(files), total=len(tasks))
        consumed = {
            FileGroupId(one.partition_path or "", one.file_id or ""): frozenset(
                address.rpartition("/")[2] for address in one.delta_file_paths
            )
            for one in operations
        }
        work = Work(operation=Operation.LOG_COMPACT, files=files, consumed=consumed)
        outcome = outcome_of(state, attempt, work)
        assert outcome.at_commit is not None
        at_commit = _AtCommit(frozenset(consumed), outcome.at_commit)
        return replace(outcome, at_commit=at_commit)


LOG_COMPACTION: TableService = LogCompaction()


@dataclass(frozen=True, slots=True, eq=False)
class _AtCommit:
    """Checks once more, under the lock, that no pending compaction names the file groups."""

    groups: frozenset[FileGroupId]
    complete: Callable[[TableChange, Snapshot], TableChange]

    def __call__(self, change: TableChange, snapshot: Snapshot) -> TableChange:
        assert_no_compaction(snapshot, change.instant, self.groups)
        return self.complete(change, snapshot)


def _select(
    context: Context,
    snapshot: Snapshot,
    plan_request: PlanRequest,
    partitions: tuple[str, ...] | None,
) -> Selection[FileSlice]:
    held = held_groups(snapshot)
    slices = latest_file_slices(snapshot, partitions)
    names = tuple(dict.fromkeys(slice_.partition for slice_ in slices))
    sifted = sift(slices, held, with_partition_filter(plan_request, snapshot, names).partitions)
    threads = context.settings[STORAGE_THREADS]
    limits = LogCompactionLimits(
        blocks_min=context.settings[BLOCKS_MIN],
        bytes_max=plan_request.max_bytes,
        groups_max=plan_request.max_file_groups,
    )
    chosen = select_groups(count_blocks(context.storage, sifted.chosen, threads=threads), limits)
    return replace(chosen, skipped=sifted.skipped + chosen.skipped)


def _refusal(reason: Reason, why: str) -> Refusal:
    return Refusal(service=Service.LOG_COMPACTION, reason=reason, why=why)
