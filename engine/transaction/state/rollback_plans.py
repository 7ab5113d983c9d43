"""The rollbacks on a timeline: which instant each of them targets, and how far it has come."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakewarden.engine.formats.instant_metadata import rollback
from lakewarden.engine.formats.instant_metadata.binding import TORN_PLAN
from lakewarden.engine.kernel.errors import Conflict, CorruptTable
from lakewarden.engine.storage.port import Entry
from lakewarden.engine.timeline.instants.instant import Action, StateFile
from lakewarden.engine.timeline.ledger.entries import Committed
from lakewarden.engine.timeline.ledger.ledger import Ledger
from lakewarden.engine.timeline.timeline import ActiveTimeline, Timeline


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """A rollback that was planned and has not completed; one instant has one at most."""

    instant: str
    target: str
    plan: rollback.RollbackPlan
    published_ms: int


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """Rollbacks by the instant they target."""

    pending: Mapping[str, PendingRollback] = field(default_factory=dict)
    # Target -> the instant of the completed rollback.
    completed: Mapping[str, str] = field(default_factory=dict)
    # Requested files that are no whole plan: their writers died, and they count for nothing.
    torn: tuple[Entry, ...] = ()


def pending_rollbacks(active: ActiveTimeline) -> Rollbacks:
    """Those under way; costs one read for each of them."""
    pending: dict[str, PendingRollback] = {}
    torn: list[Entry] = []
    for file in _plans(active):
        try:
            plan = rollback.decode_plan(active.read(file.instant), file.entry.path)
        except CorruptTable as error:
            if error.code != TORN_PLAN:
                raise
            torn.append(file.entry)
            continue
        if plan.instant_to_rollback is None:
            continue
        target = plan.instant_to_rollback.commit_time
        requested = file.instant.requested
        # Should there be two, the older one is finished, as Java does.
        pending.setdefault(target, PendingRollback(requested, target, plan, file.entry.modified_ms))
    return Rollbacks(pending=pending, torn=tuple(torn))


def completed_rollback_of(active: ActiveTimeline, target: str) -> str | None:
    """The completed rollback of an instant; reads the rollbacks that are newer than it."""
    for instant in active.completed((Action.ROLLBACK,)):
        if instant.requested > target:
            metadata = rollback.decode(active.read(instant), active.path(instant))
            if target in metadata.commits_rollback:
                return instant.requested
    return None


def rollback_of(timeline: Timeline, target: str) -> str | None:
    """The completed rollback of an instant that is gone, in the archive, too.

    That of one which is still there is not archived: what is pending holds all that came later.
    """
    found = completed_rollback_of(timeline.active, target)
    if found is not None:
        return found
    for row in timeline.archive.rows((Action.ROLLBACK,), since=target):
        path = f"archived rollback {row.instant.requested}"
        if target in rollback.decode(row.metadata or b"", path).commits_rollback:
            return row.instant.requested
    return None


def is_taken_back(active: ActiveTimeline, rollbacks: Rollbacks, ledger: Ledger) -> bool:
    """Whether a writer without a ledger rolls back what it says is committed, or has done so.

    Whatever the ledger says, its files are gone or about to go, so it must not be published. The
    rollback of an attempt at a plan may be older than the commit of a later attempt.
    """
    entry = ledger.last_whole
    if not isinstance(entry, Committed):
        return False
    if ledger.instant in rollbacks.pending:
        return True
    done = completed_rollback_of(active, ledger.instant)
    has_plan = entry.action.completed_as is not entry.action
    return done is not None and (not has_plan or done > entry.completion_time)


def rolled_back_elsewhere(action: Action, instant: str) -> Conflict:
    """The error for an instant that was rolled back without an entry in its ledger."""
    return Conflict(
        "rolled_back_elsewhere",
        what=f"{action.value} {instant} was rolled back by another engine.",
        why=(
            "A Java writer does so with the EAGER policy, or with a shorter heartbeat interval "
            "than ours, which makes a live write look dead."
        ),
        now=(
            "Set hoodie.clean.failed.writes.policy=LAZY and the same heartbeat interval for all "
            "writers, then write again."
        ),
        instant=instant,
    )


def _plans(active: ActiveTimeline) -> Iterator[StateFile]:
    for instant in active.pending((Action.ROLLBACK,)):
        files = active.files_of(instant)
        if files is not None and files.requested is not None:
            yield files.requested
