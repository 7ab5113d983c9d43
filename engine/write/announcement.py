"""The announcement of a write: which file groups it is about to touch, in its inflight file.

The write knows them before it makes its first file. Cancellable plans look at announcements before
they commit, and give way. Writes that take part in early conflict detection look at each other's.
Java reads the same in the inflight files of its own writes: each file group with the instant of its
base file and the number of updates.

Recording identity: what a write has found out about a table, or says first, is kept for all.

Only properties change. After a crash before the write's commit the table says what its files tell,
or it has no rows.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from lakewarden.engine.conflicts.conflicts import (
    ConflictStrategy,
    ObservedInstants,
    find_conflicts,
    overlapping_plans,
    write_conflict,
)
from lakewarden.engine.conflicts.group_hashes import put_hashes
from lakewarden.engine.conflicts.touched_groups import (
    PLANNED,
    PRECEDENCE_KEY,
    Precedence,
    ReadScope,
)
from lakewarden.engine.detection.rivals import Own, RivalFinder
from lakewarden.engine.detection.strategies import DetectionRules, Strategy
from lakewarden.engine.detection.watch import Watch
from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import commit_content
from lakewarden.engine.index.identity import identity_changed, record_of, recorded_identity
from lakewarden.engine.index.kinds import Identity, IndexChoice, KeyScope
from lakewarden.engine.index.settings import may_be_named
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import to_inflight
from lakewarden.engine.transaction.start import may_be_preempted
from lakewarden.engine.transaction.state.claims import fence_plans
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.write.files.spec import GroupWork, WriteSpec
from lakewarden.engine.write.files.write_groups import goes_to_log
from lakewarden.engine.write.plan import WritePlan


def record_identity(context: Context, state: Snapshot, selection: IndexChoice) -> None:
    """Record the index of a write, if nothing that says as much is recorded."""
    recorded = recorded_identity(state.config)
    if not _is_due(state, recorded, selection):
        return
    with context.lock.hold() as held:
        snapshot = reload_under_lock(context)
        now = snapshot
        if recorded_identity(snapshot.config) != recorded or (
            may_be_named(state) and not may_be_named(now)
        ):
            raise identity_changed("that was about to start")
        held.assert_held()
        update_properties(context.storage, record_of(selection, is_named=True))


def _is_due(state: Snapshot, recorded: Identity | None, selection: IndexChoice) -> bool:
    """Whether buckets were found from files, or a table without rows gets another identity."""
    if recorded is None:
        return selection.buckets is not None or (
            may_be_named(state) and selection.identity != Identity(KeyScope.PARTITION)
        )
    is_partitioned = state.config.is_partitioned
    return not selection.identity.equals_in_effect(recorded, is_partitioned=is_partitioned)


_NO_LOCK = frozenset({"lock_held", "lock_unavailable"})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WriteIntent:
    """What a write is about to touch and by which rules it conflicts, before its first file."""

    snapshot: Snapshot
    plan: WritePlan
    spec: WriteSpec
    operation: Operation
    strategy: ConflictStrategy
    read_scopes: tuple[ReadScope, ...] = ()

    @property
    def named(self) -> Iterator[GroupWork]:
        """New file groups are no rival's, unless they are those of buckets."""
        has_buckets = self.strategy.compares_buckets
        return (work for work in self.plan.groups if work.slice is not None or has_buckets)

    @property
    def groups(self) -> frozenset[FileGroupId]:
        written = frozenset(work.key for work in self.named)
        return written | {slice_.key for slice_ in self.plan.replaced}

    @property
    def appended(self) -> frozenset[FileGroupId]:
        """Those that get log files only."""
        return frozenset(work.key for work in self.named if self.is_log(work))

    def own(self, attempt: Attempt) -> Own:
        """The same with the groups in which keys have to stay, though nothing is written there."""
        stays = frozenset(one.home for one in self.plan.stays)
        return Own(
            instant=attempt.instant,
            groups=self.groups | stays,
            appended=self.appended | stays,
            read_scopes=self.read_scopes,
            snapshot=self.snapshot,
            strategy=self.strategy,
        )

    def is_log(self, work: GroupWork) -> bool:
        has_inserts = bool(len(work.inserts))
        return goes_to_log(self.spec, has_slice=work.slice is not None, has_inserts=has_inserts)

    def metadata(self, precedence: Precedence = Precedence.INSTANT) -> CommitMetadata:
        """What the inflight file says."""
        stats: dict[str, list[WriteStat]] = {}
        for work in self.named:
            stat = WriteStat(
                file_id=work.key.file_id,
                num_update_writes=len(work.updates) + len(work.departures),
                num_inserts=len(work.inserts),
                log_files=() if self.is_log(work) else None,
            )
            if work.slice is not None:
                stat = replace(stat, prev_commit=work.slice.base_instant)
            stats.setdefault(work.key.partition, []).append(stat)
        for slice_ in self.plan.replaced:
            stats.setdefault(slice_.partition, []).append(_replaced(slice_))
        return CommitMetadata(
            partition_to_write_stats={name: tuple(stats[name]) for name in sorted(stats)},
            extra_metadata={PRECEDENCE_KEY: precedence.value},
            operation_type=self.operation,
        )


def announce(
    context: Context,
    attempt: Attempt,
    intent: WriteIntent,
    rules: DetectionRules | None,
) -> None:
    """Steps of `write`: plans, announce, inflight, look, fence-plans.

    From here on cancellable plans give way. A write that takes part in early detection looks who is
    there, and goes on looking whenever it is asked whether it may go on. One that is transactional
    takes the lock, and looks before it announces.
    """
    if rules is None:
        _refuse_held(context, attempt, intent)
        _publish(context, attempt, intent, rules, Precedence.INSTANT)
    else:
        watch = Watch(context, RivalFinder(context, rules, intent.own(attempt)))
        _publish_and_look(context, attempt, intent, rules, watch)
        watch.begin()
        attempt.watch_with(watch.assert_unrivalled)
    rivals = overlapping_plans(intent.groups, intent.snapshot.timeline.active)
    fence_plans(context, rivals, attempt.instant)


def _publish_and_look(
    context: Context,
    attempt: Attempt,
    intent: WriteIntent,
    rules: DetectionRules,
    watch: Watch,
) -> None:
    """Of two that announce before they look, one at least sees the other, without any lock."""
    with ExitStack() as lock:
        if rules.strategy is Strategy.TRANSACTIONAL and _takes_lock(context, attempt, lock):
            attempt.tell("look for rivals")
            watch.give_way_before_announcing()
            _publish(context, attempt, intent, rules, Precedence.FIRST)
            return
    _publish(context, attempt, intent, rules, Precedence.INSTANT)
    watch.give_way()


def _takes_lock(context: Context, attempt: Attempt, lock: ExitStack) -> bool:
    """Whether the lock could be had; without it the older one of two writes stays."""
    attempt.tell("wait for the lock")
    try:
        lock.enter_context(context.lock.hold(while_wanted=True))
    except LakewardenError as error:
        if error.code not in _NO_LOCK:
            raise
        figures = {"instant": attempt.instant, "reason": str(error)}
        context.ports.events(Event("early_look_failed", figures))
        return False
    return True


def _publish(
    context: Context,
    attempt: Attempt,
    intent: WriteIntent,
    rules: DetectionRules | None,
    precedence: Precedence,
) -> None:
    """Steps `write.announce` and `write.inflight`."""
    if rules is not None:
        put_hashes(
            context.storage,
            attempt.instant,
            intent.groups,
            intent.strategy,
            precedence,
            has_bloom=rules.strategy.has_bloom,
        )
    metadata = intent.metadata(precedence)
    content = commit_content(metadata, as_json=intent.snapshot.layout.has_json)
    to_inflight(context, attempt, content, is_just_published=True)


def _refuse_held(context: Context, attempt: Attempt, intent: WriteIntent) -> None:
    """Step `write.plans`: a plan that does not give way would defeat the write at its commit."""
    snapshot = intent.snapshot
    active = snapshot.timeline.active
    if not active.pending(PLANNED):
        return
    own = intent.own(attempt)
    found = find_conflicts(
        own.groups,
        ObservedInstants.of(active),
        snapshot.timeline,
        intent.strategy,
        appended=own.appended,
    )
    ledgers = {one.instant: read_ledger(context.storage, one.instant) for one in found}
    now = replace(snapshot, ledgers=ledgers)
    if not all(may_be_preempted(context, now, plan) for plan in sorted(ledgers)):
        raise write_conflict(attempt.instant, found)


def _replaced(slice_: FileSlice) -> WriteStat:
    return WriteStat(file_id=slice_.file_id, prev_commit=slice_.base_instant)
