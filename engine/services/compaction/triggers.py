"""Triggers: whether a compaction is due, from what has happened since the last one."""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import Action


class Trigger(StrEnum):
    """What a compaction waits for, by Hudi's names."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True)
class TimelineProgress:
    """What has happened since compactions."""

    # Delta commits completed since the last completed compaction was requested.
    since_completed: int
    # Delta commits started since the last compaction was requested, pending or not.
    since_requested: int
    # When the last compaction was requested, or the first delta commit without one.
    began: str


@dataclass(frozen=True, slots=True)
class DueCompaction:
    """When a compaction is due."""

    trigger: Trigger
    delta_commits: int
    seconds: int


def progress_of(active: ActiveTimeline) -> TimelineProgress | None:
    """What the timeline tells; None where nothing was ever written to a log."""
    deltas = [one for one in active.instants if one.action is Action.DELTA_COMMIT]
    compacted = max((i.requested for i in active.completed((Action.COMMIT,))), default=None)
    if compacted is None and not deltas:
        return None
    pending = max((i.requested for i in active.pending((Action.COMPACTION,))), default=None)
    completed = [one.completed or "" for one in deltas if one.is_completed]
    requested = pending or compacted
    return TimelineProgress(
        sum(compacted is None or time > compacted for time in completed),
        sum(requested is None or one.requested > requested for one in deltas),
        compacted or min(one.requested for one in deltas),
    )


def reported(due: DueCompaction, progress: TimelineProgress, elapsed_seconds: int) -> str:
    """What a trigger waits for, and how much of it there is."""
    by_request = due.trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST
    found = progress.since_requested if by_request else progress.since_completed
    commits = f"{due.delta_commits} delta commits (there are {found})"
    seconds = f"{due.seconds} seconds ({elapsed_seconds} have passed)"
    match due.trigger:
        case Trigger.TIME_ELAPSED:
            waits = seconds
        case Trigger.NUM_AND_TIME:
            waits = f"{commits} and {seconds}"
        case Trigger.NUM_OR_TIME:
            waits = f"{commits} or {seconds}"
        case _:
            waits = commits
    return f"{due.trigger} waits for {waits}."


def is_due(due: DueCompaction, progress: TimelineProgress, elapsed_seconds: float) -> bool:
    """Whether a compaction is due, so many seconds after what it counts from began."""
    has_commits = progress.since_completed >= due.delta_commits
    has_time = elapsed_seconds >= due.seconds
    match due.trigger:
        case Trigger.NUM_COMMITS:
            return has_commits
        case Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
            return progress.since_requested >= due.delta_commits
        case Trigger.TIME_ELAPSED:
            return has_time
        case Trigger.NUM_AND_TIME:
            return has_commits and has_time
        case Trigger.NUM_OR_TIME:
            return has_commits or has_time
