"""Log compaction: many small logs of a file group become one, and the base file stays."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakewarden.engine.formats.payloads import compaction
from lakewarden.engine.formats.payloads.commit import Operation
from lakewarden.engine.index.current_slices import current_slices
from lakewarden.engine.metadata.changes import TableChange
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.commit import Outcome
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.service import Service, is_cancellable
from lakewarden.engine.plans.settings import STORAGE_THREADS
from lakewarden.engine.plans.window import find_window
from lakewarden.engine.services.choice import Choice, Draft, Drafted, Reason, Refusal
from lakewarden.engine.services.held import held_groups
from lakewarden.engine.services.in_window import untouched
from lakewarden.engine.services.log_compaction.counting import count_blocks
from lakewarden.engine.services.log_compaction.overtaking import assert_no_compaction
from lakewarden.engine.services.log_compaction.plan import (
    Limits,
    choose,
    log_bytes,
    plan_of,
    sift,
)
from lakewarden.engine.services.log_compaction.run import Folding, FoldTask
from lakewarden.engine.services.log_compaction.settings import BLOCKS_MIN
from lakewarden.engine.services.narrowing import narrowed
from lakewarden.engine.services.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.place import Place, Placed
from lakewarden.engine.services.table_service import TableService
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.table.config import TableType
from lakewarden.engine.view.planned_slices import recorded_logs
from lakewarden.engine.view.slices import FileSlice, SliceKey
from lakewarden.engine.write.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec
from lakewarden.engine.write.written import WrittenFile


class LogCompaction:
    """Drafts log compactions and carries them out.

    They wait for nothing but enough blocks, as in Hudi: there are no triggers to honour.
    """

    @property
    def service(self) -> Service:
        return Service.LOG_COMPACTION

    def draft(self, context: Context, moment: Snapshot, wish: Wish) -> Drafted:
        if moment.config.table_type is not TableType.MERGE_ON_READ:
            return _refusal(Reason.WRONG_TABLE_TYPE, "A copy-on-write table has no logs.")
        refuse_unwritable(moment.config)
        rules = str(context.settings[BLOCKS_MIN])
        window = find_window(context, moment, self.service, rules)
        if (nothing := untouched(self.service, window)) is not None:
            return nothing
        choice = _choice(context, moment, wish, window.partitions)
        if not choice.chosen:
            why = f"No file group has enough blocks in its logs. {window.why}"
            return replace(
                _refusal(Reason.NOTHING_TO_DO, why),
                left_out=choice.left_out,
                missing_partitions=choice.missing_partitions,
            )
        plan = plan_of(
            choice.chosen,
            is_cancellable=is_cancellable(context.settings, self.service, wish.cancellable),
            missing_partitions=choice.missing_partitions,
        )
        return Draft(
            content=compaction.encode_plan(plan),
            groups=frozenset(slice_.key for slice_ in choice.chosen),
            missing_partitions=choice.missing_partitions,
            left_out=choice.left_out,
            input_bytes=sum(map(log_bytes, choice.chosen)),
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
        fold = Placed(Place.here(context.storage, attempt), Folding(spec))
        for file in context.ports.executor.map(fold, tasks):
            files.append(file)
            attempt.assert_mine()
            attempt.tell("fold logs", done=len(files), total=len(tasks))
        consumed = {
            SliceKey(one.partition_path or "", one.file_id or ""): frozenset(
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
    """Looks once more, under the lock, that nobody is about to compact the file groups."""

    groups: frozenset[SliceKey]
    complete: Callable[[TableChange, Snapshot], TableChange]

    def __call__(self, change: TableChange, moment: Snapshot) -> TableChange:
        assert_no_compaction(moment, change.instant, self.groups)
        return self.complete(change, moment)


def _choice(
    context: Context, moment: Snapshot, wish: Wish, partitions: tuple[str, ...] | None
) -> Choice[FileSlice]:
    held = held_groups(moment)
    slices = current_slices(moment, partitions)
    names = tuple(dict.fromkeys(slice_.partition for slice_ in slices))
    sifted = sift(slices, held, narrowed(wish, moment, names).partitions)
    threads = context.settings[STORAGE_THREADS]
    limits = Limits(
        blocks_min=context.settings[BLOCKS_MIN],
        bytes_max=wish.max_bytes,
        groups_max=wish.max_file_groups,
    )
    chosen = choose(count_blocks(context.storage, sifted.chosen, threads=threads), limits)
    return replace(chosen, left_out=sifted.left_out + chosen.left_out)


def _refusal(reason: Reason, why: str) -> Refusal:
    return Refusal(service=Service.LOG_COMPACTION, reason=reason, why=why)
