"""The commit: the one way in which a write or a table service ends well."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from lakewarden.engine.conflicts.conflicts import (
    KINDS,
    ConflictKind,
    ConflictStrategy,
    ObservedInstants,
    find_conflicts,
    find_live_conflicts,
    find_plan_conflicts,
    overlapping_plans,
    plan_conflict,
    write_conflict,
)
from lakewarden.engine.conflicts.touched_groups import ReadScope
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.formats.instant_metadata.replace import commit_content
from lakewarden.engine.index.key_check import KeyCheck, too_many_commits
from lakewarden.engine.kernel.errors import Conflict, Defect, LakewardenError
from lakewarden.engine.kernel.events import PLAN_GAVE_WAY, Event
from lakewarden.engine.locks.table_lock import HeldLock
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.writing.writer import Reported, write_change
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Entry
from lakewarden.engine.storage.side_by_side import asks_ahead, both, together
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.transaction.abort_attempt import aborting_on_error
from lakewarden.engine.transaction.attempts.attempt import Attempt, complete
from lakewarden.engine.transaction.metadata_compaction import compact_after_commit
from lakewarden.engine.transaction.rollback.cancelled_instant import abort
from lakewarden.engine.transaction.start import may_be_preempted, preempt
from lakewarden.engine.transaction.state.claims import fence_rivals
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.ledger_end import scope_of
from lakewarden.engine.transaction.state.live_attempt import live_writes
from lakewarden.engine.transaction.state.markers import read_markers
from lakewarden.engine.transaction.state.rollback_plans import (
    pending_rollbacks,
    rolled_back_elsewhere,
)
from lakewarden.engine.transaction.sweep.sweep import (
    clean_up_instant,
    delete_paths,
    look_at_paths,
    sweep,
)

FENCES_MAX = 10
# A turn has to look at what was committed during the one before: the second is usually the last.
TURNS_MAX = 5


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an attempt has done, ready to be committed."""

    metadata: CommitMetadata
    change: TableChange
    # The file groups it is about, and those of them that got log files only.
    touched: frozenset[FileGroupId]
    appended: frozenset[FileGroupId] = frozenset()
    # Where it has searched for the rows that it decided by.
    read_scopes: tuple[ReadScope, ...] = ()
    # What the timeline showed when it chose them; a plan has chosen when it was published.
    seen: ObservedInstants | None = None
    strategy: ConflictStrategy = field(default_factory=ConflictStrategy)
    # Of a write that took keys for new: whether others have brought them as well.
    key_check: KeyCheck | None = None
    # Path -> size in bytes of every data file it made.
    outputs: Mapping[str, int]
    # The paths of all files that it may have started, where it knows; otherwise its markers tell.
    announced: frozenset[str] | None = None
    # What only the lock makes certain: the change as it is for the table of that moment.
    at_commit: Callable[[TableChange, Snapshot], TableChange] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A commit, which nothing can undo any more but a rollback."""

    instant: str
    completion_time: str
    # False when the storage failed right after the commit: the next operation publishes it.
    is_published: bool
    # Instants of others that had committed and were not published yet.
    rolled_forward: tuple[str, ...] = ()
    # Plans that gave way.
    preempted: tuple[str, ...] = ()
    leftovers_deleted: int = 0


@dataclass(frozen=True, slots=True)
class _Ended:
    """A commit, and what its maker has seen on the way."""

    snapshot: Snapshot
    ledger: Ledger
    receipt: Receipt
    reported: Reported


def outputs_of(metadata: CommitMetadata) -> dict[str, int]:
    """The paths and sizes of the files that commit metadata names."""
    return {
        path: size_bytes
        for stats in metadata.partition_to_write_stats.values()
        for stat in stats
        for path, size_bytes in stat.outputs.items()
    }


def commit(context: Context, attempt: Attempt, outcome: Outcome) -> Receipt:
    """End an attempt well.

    Steps of `commit`: lock, own-ledger, reload, fence, conflicts, outputs, metadata, time, append,
    publish, unlock, tidy, metadata-compaction. An attempt that another committer fences begins anew
    at `commit.own-ledger`. Where `commit.conflicts` has to read more keys of others than these can
    wait for, it unlocks, reads them, and begins again at `commit.lock`. What fails before
    `commit.append` ends the attempt and removes what it made, and the error is raised; after it the
    instant is committed whatever happens. Only where it is not known whether the entry is there,
    everything stays as it is, and the next operation on the table settles it.
    """
    with aborting_on_error(context, attempt):
        ended, hold = _in_turns(context, attempt, outcome)
    with hold:
        _tidy_up(context, attempt, ended, hold)
    context.memory.weight = ended.reported.weight
    compact_after_commit(context, ended.snapshot.metadata, ended.reported)
    return ended.receipt


def _in_turns(
    context: Context, attempt: Attempt, outcome: Outcome
) -> tuple[_Ended, ExitStack[bool | None]]:
    """Steps `commit.lock` to `commit.publish`; between two turns the keys of others are read.

    The answer comes with the hold of the lock, which is the caller's to end.
    """
    for _ in range(TURNS_MAX):
        with ExitStack() as turn:
            held = turn.enter_context(context.lock.hold())
            ended = _commit_unfenced(context, held, attempt, outcome)
            if ended is not None:
                return ended, turn.pop_all()
        assert outcome.key_check is not None
        outcome.key_check.read_on()
    raise too_many_commits(attempt.instant)


def _commit_unfenced(
    context: Context, held: HeldLock, attempt: Attempt, outcome: Outcome
) -> _Ended | None:
    """Steps `commit.own-ledger` to `commit.publish`, again after another committer's fence."""
    for _ in range(FENCES_MAX):
        # The own ledger comes first: whatever the timeline does not show yet has to fence it later.
        ledger = attempt.check_claim()
        snapshot = reload_under_lock(context, ledger)
        _assert_pending(snapshot, attempt)
        if not fence_rivals(context, snapshot, attempt.instant):
            continue
        try:
            return _commit_under_lock(context, held, snapshot, attempt, ledger, outcome)
        except Conflict as error:
            if error.code != "fenced":
                raise
    raise Conflict(
        "write_conflict",
        what=f"The write {attempt.instant} lost the lock {FENCES_MAX} times while it committed.",
        why="Other writers committed each time.",
        now=(
            "Nothing was changed. Write again, and give the lock a longer expiry than the "
            "pauses of this process."
        ),
        instant=attempt.instant,
    )


def _commit_under_lock(
    context: Context,
    held: HeldLock,
    snapshot: Snapshot,
    attempt: Attempt,
    ledger: Ledger,
    outcome: Outcome,
) -> _Ended | None:
    """Steps `commit.conflicts` to `commit.publish`; None if too many keys are to be read first."""
    preempted = _resolve_conflicts(context, snapshot, attempt, outcome)
    if preempted is None:
        return None
    verify = partial(_verify_outputs, context, attempt, outcome)
    leftovers, _ = both(context.storage, verify, partial(_look_ahead, held, snapshot))
    change = _change_now(snapshot, outcome)
    reported = Reported()
    if snapshot.config.metadata_partitions:
        reported = _update_metadata(context, held, snapshot, attempt, change)
    # Where calls are made side by side, that has asked for the lock at its end.
    is_checked = bool(snapshot.config.metadata_partitions) and asks_ahead(context.storage)
    content = commit_content(outcome.metadata, as_json=snapshot.layout.has_json)
    completion = complete(context, held, snapshot, ledger, content, is_checked=is_checked)
    assert completion.instant.completed is not None
    receipt = Receipt(
        instant=attempt.instant,
        completion_time=completion.instant.completed,
        is_published=completion.is_published,
        rolled_forward=tuple(rolled.instant.requested for rolled in snapshot.rolled_forward),
        preempted=preempted,
        leftovers_deleted=leftovers,
    )
    return _Ended(snapshot, ledger, receipt, reported)


def _look_ahead(held: HeldLock, snapshot: Snapshot) -> None:
    """Ask for the lock and for what the next steps want, while the outputs are looked at.

    Where calls are made in turn, the lock is asked for right before the metadata table is written.
    """
    if not asks_ahead(snapshot.storage):
        return
    wanted: list[Callable[[], object]] = [held.assert_held]
    if snapshot.config.metadata_partitions:
        wanted += [lambda: snapshot.stored_definitions, lambda: snapshot.metadata.timeline]
    together(snapshot.storage, wanted)


def _update_metadata(
    context: Context, held: HeldLock, snapshot: Snapshot, attempt: Attempt, change: TableChange
) -> Reported:
    """Step `commit.metadata`."""
    ports, settings = context.ports, context.settings
    is_asked_beside = asks_ahead(context.storage)
    if not is_asked_beside:
        held.assert_held()
    try:
        return write_change(
            snapshot.metadata,
            snapshot.definitions,
            change,
            snapshot.times,
            ports,
            settings,
            context.memory.weight,
            memory=context.memory.partitions,
            beside=held.assert_held if is_asked_beside else lambda: None,
        )
    except Conflict:
        # If it was cancelled this very moment, that is the reason.
        attempt.check_claim()
        raise


def _assert_pending(snapshot: Snapshot, attempt: Attempt) -> None:
    """A writer without a ledger may have rolled the instant back, or may be about to."""
    rollbacks = pending_rollbacks(snapshot.timeline.active)
    if snapshot.pending(attempt.instant) is None or attempt.instant in rollbacks.pending:
        raise rolled_back_elsewhere(attempt.action, attempt.instant)


def _resolve_conflicts(
    context: Context, snapshot: Snapshot, attempt: Attempt, outcome: Outcome
) -> tuple[str, ...] | None:
    """Step `commit.conflicts`: cancellable plans give way to a write, which yields to all else.

    None where that is not known without reading much.
    """
    if attempt.action in KINDS:
        return _resolve_of_plan(context, snapshot, attempt, outcome)
    assert outcome.seen is not None
    found = find_conflicts(
        outcome.touched,
        outcome.seen,
        snapshot.timeline,
        outcome.strategy,
        appended=outcome.appended,
        read_scopes=outcome.read_scopes,
    )
    if not all(one.kind is ConflictKind.PLANNED for one in found):
        raise write_conflict(attempt.instant, found)
    plans = sorted({one.instant for one in found})
    # None is cancelled in vain, for a write that has to give way to another one.
    if not all(may_be_preempted(context, snapshot, plan) for plan in plans):
        raise write_conflict(attempt.instant, found)
    check = outcome.key_check
    if check is not None and not check.passes_briefly(snapshot.timeline.active):
        return None
    for plan in plans:
        if not preempt(context, snapshot, plan, attempt.instant):
            raise write_conflict(attempt.instant, found)
    return tuple(plans)


def _resolve_of_plan(
    context: Context, snapshot: Snapshot, attempt: Attempt, outcome: Outcome
) -> tuple[str, ...]:
    """A plan gives way to its rivals; one that stays has cancellable ones give way."""
    if assert_plan_stays(context, snapshot, attempt.instant, outcome.touched):
        return ()
    active = snapshot.timeline.active
    others = overlapping_plans(outcome.touched, active, but=attempt.instant)
    return tuple(plan for plan in others if preempt(context, snapshot, plan, attempt.instant))


def assert_plan_stays(
    context: Context, snapshot: Snapshot, plan: str, groups: frozenset[FileGroupId]
) -> bool:
    """Raise if a pending plan has to give way; whether it is cancellable.

    It gives way to what was written to its file groups since it was published. A cancellable one
    gives way to live writes as well.
    """
    files = snapshot.pending(plan)
    assert files is not None
    kind, active = KINDS[files.started_as], snapshot.timeline.active
    found = find_plan_conflicts(plan, kind, groups, active)
    is_cancellable = scope_of(snapshot, files).is_cancellable
    if is_cancellable and not found:
        live = live_writes(context, snapshot, groups)
        found = find_live_conflicts(plan, kind, groups, live)
    if found:
        figures = {"plan": plan, "to": found[0].instant}
        context.ports.events(Event(PLAN_GAVE_WAY, figures))
        raise plan_conflict(plan, files.started_as, found)
    return is_cancellable


def _verify_outputs(context: Context, attempt: Attempt, outcome: Outcome) -> int:
    """Step `commit.outputs`: they are there as recorded; how many leftovers were removed."""
    paths = sorted(outcome.outputs)
    marked, entries = both(
        context.storage,
        partial(_announced, context, attempt, outcome),
        partial(look_at_paths, context, paths),
    )
    unmarked = sorted(set(outcome.outputs) - marked)
    if unmarked:
        raise Defect(
            "unmarked_output",
            what=f"Lakewarden wrote {unmarked[0]} without a marker.",
            why="After a crash no rollback would find it, and its rows would appear later.",
            path=unmarked[0],
        )
    for path, entry in zip(paths, entries, strict=True):
        if entry is None or entry.size_bytes != outcome.outputs[path]:
            # If it was cancelled this very moment, that is the reason.
            attempt.check_claim()
            raise _lost_output(attempt, path, entry)
    leftovers = sorted(marked - set(outcome.outputs))
    if leftovers:
        # A later claim writes later: by law 1 nothing of a newer attempt may be among these.
        attempt.check_claim()
    return delete_paths(context, leftovers)


def _announced(context: Context, attempt: Attempt, outcome: Outcome) -> frozenset[str]:
    if outcome.announced is not None:
        return outcome.announced
    marked = read_markers(context.storage, attempt.instant) or ()
    return frozenset(file.path for file in marked)


def _change_now(snapshot: Snapshot, outcome: Outcome) -> TableChange:
    return (
        outcome.change if outcome.at_commit is None else outcome.at_commit(outcome.change, snapshot)
    )


def _tidy_up(
    context: Context, attempt: Attempt, ended: _Ended, hold: ExitStack[bool | None]
) -> None:
    """Steps `commit.unlock` and `commit.tidy`; nothing of it can fail a commit any more."""
    tidying = (partial(_clear, context, attempt, ended.ledger), partial(sweep, context))
    try:
        together(context.storage, (hold.close, *tidying))
        for plan in ended.receipt.preempted:
            abort(context, plan)
    except LakewardenError as error:
        figures = {"instant": attempt.instant, "reason": str(error)}
        context.ports.events(Event("left_for_later", figures))


def _clear(context: Context, attempt: Attempt, ledger: Ledger) -> None:
    attempt.stop_heartbeats()
    clean_up_instant(context.storage, ledger)


def _lost_output(attempt: Attempt, path: str, entry: Entry | None) -> Conflict:
    found = "is gone" if entry is None else f"has {entry.size_bytes} bytes"
    return Conflict(
        "output_lost",
        what=f"{path}, an output of {attempt.action.value} {attempt.instant}, {found}.",
        why="Another process has changed or deleted it.",
        now="Make sure that no other process cleans up or rolls back here, then try again.",
        path=path,
        instant=attempt.instant,
    )
