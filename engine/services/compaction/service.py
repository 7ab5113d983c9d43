"""The compaction service: drafts plans for slices with logs, and carries plans out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lakewarden.engine.formats.payloads.commit import Operation
from lakewarden.engine.formats.payloads.compaction import CompactionOperation, decode_plan
from lakewarden.engine.metadata.writer import refuse_unmaintained
from lakewarden.engine.plans.attempt import Attempt
from lakewarden.engine.plans.commit import Outcome
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.service import Service, is_cancellable
from lakewarden.engine.plans.window import find_window
from lakewarden.engine.services.choice import Draft, Drafted, LeftOut, Reason, Refusal
from lakewarden.engine.services.compaction.choosing import choose
from lakewarden.engine.services.compaction.plan import plan_bytes
from lakewarden.engine.services.compaction.run import Compacting, CompactionTask
from lakewarden.engine.services.compaction.settings import DELTA_COMMITS, DELTA_SECONDS, TRIGGER
from lakewarden.engine.services.compaction.triggers import (
    Due,
    Trigger,
    is_due,
    progress_of,
    told,
)
from lakewarden.engine.services.in_window import untouched
from lakewarden.engine.services.outcome import Work, outcome_of, schema_at
from lakewarden.engine.services.place import Place, Placed
from lakewarden.engine.services.wish import Wish
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig, TableType
from lakewarden.engine.timeline.instant import epoch_ms
from lakewarden.engine.view.planned_slices import recorded_logs
from lakewarden.engine.view.slices import SliceKey
from lakewarden.engine.write.prepare import refuse_unwritable
from lakewarden.engine.write.settings import write_spec
from lakewarden.engine.write.spec import WriteSpec
from lakewarden.engine.write.written import WrittenFile


class Compaction:
    """Merges logs into new base files."""

    @property
    def service(self) -> Service:
        return Service.COMPACTION

    def draft(self, context: Context, moment: Snapshot, wish: Wish) -> Drafted:
        """The plan for the table as it is at a moment, or why there is none."""
        # A refusal is falsy, so that `or` would pass over it.
        for refusal in (_wrong_type(moment), _not_due(context, moment, wish)):
            if refusal is not None:
                return refusal
        _refuse(context.storage, moment.config)
        window = find_window(context, moment, Service.COMPACTION)
        if (nothing := untouched(Service.COMPACTION, window)) is not None:
            return nothing
        choice = choose(context, moment, window, wish)
        if not choice.chosen:
            return _nothing(choice.left_out, choice.missing_partitions)
        cancellable = is_cancellable(context.settings, Service.COMPACTION, wish.cancellable)
        missing = choice.missing_partitions
        return Draft(
            content=plan_bytes(choice.chosen, missing, cancellable=cancellable),
            groups=frozenset(candidate.slice.key for candidate in choice.chosen),
            missing_partitions=missing,
            left_out=choice.left_out,
            input_bytes=sum(candidate.slice.size_bytes for candidate in choice.chosen),
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
    work = Placed(Place.here(context.storage, attempt), Compacting(replace(spec, threads=threads)))
    attempt.tell("compact", total=len(tasks))
    size_bytes = 0
    for done, file in enumerate(executor.map(work, tasks), start=1):
        attempt.assert_mine()
        size_bytes += file.file.size_bytes
        attempt.tell("compact", done=done, total=len(tasks), bytes_done=size_bytes)
        yield file


def _consumed(operations: Sequence[CompactionOperation]) -> dict[SliceKey, frozenset[str]]:
    """The files that the new ones stand for."""
    return {
        SliceKey(one.partition_path or "", one.file_id or ""): frozenset(
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


def _wrong_type(moment: Snapshot) -> Refusal | None:
    if moment.config.table_type is TableType.MERGE_ON_READ:
        return None
    return Refusal(
        service=Service.COMPACTION,
        reason=Reason.WRONG_TABLE_TYPE,
        why="A copy-on-write table has no logs to merge.",
    )


def _not_due(context: Context, moment: Snapshot, wish: Wish) -> Refusal | None:
    """Why a compaction has to wait; an explicit wish does not."""
    if not wish.honour_trigger:
        return None
    settings = context.settings
    due = Due(Trigger(settings[TRIGGER]), settings[DELTA_COMMITS], settings[DELTA_SECONDS])
    progress = progress_of(moment.timeline.active)
    if progress is None:
        why = "The table has no writes yet."
    else:
        began_ms = epoch_ms(progress.began, moment.layout.zone) or 0
        # Java counts whole seconds, too.
        elapsed = context.now_ms() // 1000 - began_ms // 1000
        if is_due(due, progress, elapsed):
            return None
        why = told(due, progress, elapsed)
    return Refusal(service=Service.COMPACTION, reason=Reason.TRIGGER_NOT_REACHED, why=why)


def _nothing(left_out: tuple[LeftOut, ...], missing: tuple[str, ...]) -> Refusal:
    """Why nothing was chosen: what most of that has to wait for which could be."""
    waiting = [one.reason for one in left_out if one.comes_back]
    if not waiting:
        return Refusal(
            service=Service.COMPACTION,
            reason=Reason.NOTHING_TO_DO,
            why="There are no logs to merge.",
            left_out=left_out,
        )
    reason = max(sorted(set(waiting)), key=waiting.count)
    example = next(one for one in left_out if one.reason is reason and one.comes_back)
    return Refusal(
        service=Service.COMPACTION,
        reason=reason,
        why=(
            f"The plan skips {len(waiting)} file groups or partitions with logs, "
            f"{waiting.count(reason)} of them for this reason: {example.detail}"
        ),
        left_out=left_out,
        missing_partitions=missing,
    )
