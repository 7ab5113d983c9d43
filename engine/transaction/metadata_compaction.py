"""Compaction of the metadata table beside writers: only its beginning and its end take the lock.

The metadata table has a ledger and heartbeats of its own, below `.hoodie/metadata/.hoodie`: a claim
there keeps two processes from folding the same at once. Safety rests on the comparison at the end.
Java takes up a pending compaction under its lock, claims or not: then its files are the ones that
count, and what was folded here goes.
"""

from dataclasses import dataclass, replace
from functools import partial

from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.kernel.errors import CorruptTable, LakewardenError
from lakewarden.engine.kernel.events import Event
from lakewarden.engine.metadata.reading.table import MetadataTable, load_metadata_table
from lakewarden.engine.metadata.writing.compact import (
    Planned,
    complete_compaction,
    deltacommits_since,
    discard_outputs,
    fold,
    is_planned,
    left_compaction,
    pending_compactions,
    publish_compaction,
)
from lakewarden.engine.metadata.writing.instants import completed_elsewhere
from lakewarden.engine.metadata.writing.writer import Reported, refuse_unmaintained
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.processes import always_wanted
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.side_by_side import asks_ahead
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.ledger.ledger import (
    Appended,
    instants_with_ledger,
    read_ledger,
    remove_ledger,
)
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.state.claims import append_claim
from lakewarden.engine.transaction.state.context import Context, reload_under_lock
from lakewarden.engine.transaction.state.live_attempt import live_attempt

# So much is folded faster than a caller notices; more is not waited for.
WAITED_FOR_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction of the metadata table that was carried out."""

    instant: str
    stats: tuple[WriteStat, ...]
    # Whether it was planned by others, who have left it.
    was_left: bool = False


@dataclass(frozen=True, slots=True)
class _Begun:
    state: MetadataTable
    planned: Planned
    attempt: Attempt
    was_left: bool


def compact_after_commit(context: Context, state: MetadataTable, reported: Reported) -> None:
    """Step `commit.metadata-compaction`: carry out the plan that is there, if it is left.

    What takes a while is done in the background, so that no caller waits for it. Whatever comes of
    it, the commit stands: the plan is taken up after a later one.
    """
    weight = reported.weight
    if weight is None or not reported.has_plan or held_compaction(context, state) is not None:
        return
    if not (asks_ahead(context.storage) or weight.logs + weight.bases > WAITED_FOR_BYTES):
        _compact_quietly(context)
    elif context.memory.compaction.begins():
        # One thread leaves the others to those who write.
        ports = replace(context.ports, executor=LocalExecutor(1), check_wanted=always_wanted)
        beside = replace(context, ports=ports)

        def work() -> None:
            try:
                _compact_quietly(beside)
            finally:
                context.memory.compaction.ends()

        context.ports.background.start(work)


def _compact_quietly(context: Context) -> None:
    try:
        compact_metadata(context)
    except LakewardenError as error:
        figures = {"service": "metadata compaction", "reason": str(error)}
        context.ports.events(Event("service_left", figures))


def compact_metadata(context: Context, *, deltacommits_min: int | None = None) -> Compacted | None:
    """Carry out a compaction that is planned, or plan one after so many deltacommits.

    None where there is nothing to do, or another attempt carries it out.

    Steps of `metadata-compaction`: lock, reload, held, plan, claim, heartbeat, unlock, fold,
    lock-again, compare, complete, unlock-again, forget. A crash after `metadata-compaction.plan`
    leaves a plan, which the next call takes up.
    """
    begun = _begin(context, deltacommits_min)
    if begun is None:
        return None
    try:
        stats = fold(begun.state, begun.planned, context.ports.executor, partial(_check, begun))
        is_complete = _complete(context, begun, stats)
    except LakewardenError as error:
        _discard(context, begun)
        if isinstance(error, CorruptTable) and not is_planned(begun.state, begun.planned.instant):
            # What was rolled back meanwhile is no damage.
            raise completed_elsewhere(begun.planned.instant) from error
        raise
    finally:
        # So does the heartbeat that Java sees: the next attempt may be by Java.
        begun.attempt.stop(leaves_plan=True)
    _forget(begun)
    instant = begun.planned.instant
    return Compacted(instant, stats, begun.was_left) if is_complete else None


def held_compaction(context: Context, state: MetadataTable) -> str | None:
    """Who is compacting the metadata table now, in words; None where there is no live attempt."""
    own = _own(context, state)
    for files in pending_compactions(state):
        held = live_attempt(own, read_ledger(state.storage, files.instant.requested))
        if held is not None:
            return f"{held} carries out the compaction {files.instant.requested}."
    return None


def _begin(context: Context, deltacommits_min: int | None) -> _Begun | None:
    """Steps `metadata-compaction.lock` to `metadata-compaction.unlock`."""
    with context.lock.hold(while_wanted=True) as held:
        snapshot = reload_under_lock(context)
        if not snapshot.config.metadata_partitions:
            return None
        refuse_unmaintained(context.storage, snapshot.config)
        state = _loaded(context, snapshot)
        if held_compaction(context, state) is not None:
            return None
        _forget_ended(state)
        left = left_compaction(state)
        # What was withdrawn here is not seen as pending any more.
        state = _loaded(context, snapshot)
        held.assert_held()
        planned = left or _plan(state, snapshot, deltacommits_min)
        if planned is None:
            return None
        return _Begun(state, planned, _claim(context, state, planned), left is not None)


def _plan(state: MetadataTable, snapshot: Snapshot, deltacommits_min: int | None) -> Planned | None:
    if deltacommits_min is None:
        return None
    if state.uncertain() or deltacommits_since(state) < deltacommits_min:
        return None
    return publish_compaction(state, snapshot.config, snapshot.times)


def _claim(context: Context, state: MetadataTable, planned: Planned) -> Attempt:
    """Steps `metadata-compaction.claim` and `metadata-compaction.heartbeat`."""
    own, ledger = _own(context, state), read_ledger(state.storage, planned.instant)
    answer = append_claim(own, ledger, Action.COMPACTION, context.ports.ids.fresh())
    claim = answer.ledger.last_claim if isinstance(answer, Appended) else None
    if claim is None:
        raise completed_elsewhere(planned.instant)
    return Attempt(own, state.layout, claim).begin(has_first_sign=True)


def _check(begun: _Begun) -> None:
    """Raise once the work is in vain: another attempt has taken over, or the plan is gone."""
    begun.attempt.assert_mine()
    if not is_planned(begun.state, begun.planned.instant):
        raise completed_elsewhere(begun.planned.instant)


def _complete(context: Context, begun: _Begun, stats: tuple[WriteStat, ...]) -> bool:
    """Steps `metadata-compaction.lock-again` to `metadata-compaction.unlock-again`."""
    with context.lock.hold() as held:
        now = begun.state.again()
        pending = {files.instant.requested for files in pending_compactions(now)}
        if begun.planned.instant not in pending:
            raise completed_elsewhere(begun.planned.instant)
        held.assert_held()
        return complete_compaction(now, begun.planned, stats)


def _discard(context: Context, begun: _Begun) -> None:
    """Remove what was made in vain; what cannot be removed now does no harm to our readers."""
    try:
        with context.lock.hold():
            discard_outputs(begun.state.again(), begun.planned.instant)
    except LakewardenError as error:
        figures = {"instant": begun.planned.instant, "reason": str(error)}
        context.ports.events(Event("left_for_later", figures))


def _forget(begun: _Begun) -> None:
    """Step `metadata-compaction.forget`: the instant needs no ledger any more."""
    storage = begun.state.storage
    remove_ledger(storage, read_ledger(storage, begun.planned.instant))


def _forget_ended(state: MetadataTable) -> None:
    """The same for attempts that have died, whose compactions are not pending any more."""
    pending = {files.instant.requested for files in pending_compactions(state)}
    for instant in instants_with_ledger(state.storage):
        if instant not in pending:
            remove_ledger(state.storage, read_ledger(state.storage, instant))


def _loaded(context: Context, snapshot: Snapshot) -> MetadataTable:
    state = load_metadata_table(context.storage, snapshot.config)
    snapshot.times.move_past(state.timeline.active.newest_time())
    return state


def _own(context: Context, state: MetadataTable) -> Context:
    """The context of the metadata table's own ledger and heartbeats."""
    return replace(context, storage=state.storage)
