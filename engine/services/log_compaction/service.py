"""Log compaction: many small logs of a file group become one, and the base file stays.

Log compaction's settings: Hudi's own keys and defaults.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.conflicts.conflicts import Conflicting, ConflictKind, plan_conflict
from lakewarden.engine.conflicts.touched_groups import planned_by
from lakewarden.engine.file_groups.listing import assert_whole
from lakewarden.engine.file_groups.planned_slices import recorded_logs
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.reader import effective_blocks, read_heads
from lakewarden.engine.formats.range_source import FileRanges
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.kernel.settings import Setting, flag, whole_number
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.execution.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.execution.task_context import FencedTask, FencedTaskContext
from lakewarden.engine.services.log_compaction.plan import (
    Counted,
    LogCompactionLimits,
    log_bytes,
    plan_of,
    select_groups,
    sift,
)
from lakewarden.engine.services.log_compaction.run import Folding, FoldTask
from lakewarden.engine.services.planning.plan_request import (
    Draft,
    Drafted,
    PlanRequest,
    Reason,
    Refusal,
    Selection,
    held_groups,
    untouched,
    with_partition_filter,
)
from lakewarden.engine.services.planning.schedule import TableService
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableType
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.commit import Outcome
from lakewarden.engine.transaction.state.context import Context, Service, is_cancellable
from lakewarden.engine.transaction.state.settings import STORAGE_THREADS
from lakewarden.engine.transaction.window.window import find_window
from lakewarden.engine.write.files.spec import WrittenFile
from lakewarden.engine.write.rows.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec

ENABLED = Setting(
    "hoodie.log.compaction.enable",
    False,
    flag,
    "Whether log compaction also runs without a request",
)
INLINE = Setting(
    "hoodie.log.compaction.inline",
    False,
    flag,
    "Whether writes schedule a log compaction, and run it",
)
BLOCKS_MIN = Setting(
    "hoodie.log.compaction.blocks.threshold",
    5,
    whole_number,
    "Blocks in the logs of a file group from which on they are compacted into one; those that an"
    " earlier log compaction has put together count as its own only",
)
LOG_COMPACTION_SETTINGS: tuple[Setting[object], ...] = (ENABLED, INLINE, BLOCKS_MIN)


def count_blocks(
    storage: Storage, slices: Sequence[FileSlice], *, threads: int
) -> tuple[Counted, ...]:
    """The slices with what their logs hold, looked at side by side: that waits for the storage."""
    executor = LocalExecutor(min(threads, max(len(slices), 1)))
    return tuple(executor.map(partial(_counted, storage), slices))


def _counted(storage: Storage, slice_: FileSlice) -> Counted:
    blocks = effective_blocks(_heads(storage, slice_), lambda _: True)
    return Counted(
        slice_,
        blocks=len(blocks),
        instants=len({block.instant for block in blocks}),
        has_partial_records=any(block.is_partial for block in blocks),
    )


def _heads(storage: Storage, slice_: FileSlice) -> Iterator[Block]:
    for log in slice_.log_files:
        path = slice_.path(log)
        with storage.open(path) as file:
            assert_whole(path, log, file.size())
            for block in read_heads(FileRanges(file), path):
                if block.kind is BlockKind.CORRUPT:
                    raise block.corrupt(block.reason)
                yield block


def assert_no_compaction(snapshot: Snapshot, instant: str, groups: frozenset[FileGroupId]) -> None:
    """Raise where a compaction of the same file groups is pending.

    Our planners leave such file groups alone, but Java's compactions are planned all the same.
    """
    active = snapshot.timeline.active
    found = tuple(
        Conflicting(other.requested, other.action, key.partition, key.file_id, ConflictKind.PLANNED)
        for other in active.pending((Action.COMPACTION,))
        for key in sorted(groups & planned_by(active, other).keys)
    )
    if found:
        raise plan_conflict(instant, Action.LOG_COMPACTION, found)


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
