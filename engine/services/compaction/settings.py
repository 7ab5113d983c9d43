"""Compaction's settings: Hudi's own keys and defaults.

Triggers: whether a compaction is due, from what has happened since the last one.
"""

from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.settings import Setting, flag, one_of, whole_number
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.timeline import ActiveTimeline


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


STRATEGY = Setting(
    "hoodie.compaction.strategy",
    "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
    str,
    "Which file groups a compaction takes, by the name of Hudi's class, in full or in short;"
    " several names, separated by commas, are applied one after the other",
    short="strategy",
)
LOG_BYTES_MIN = Setting(
    "hoodie.compaction.logfile.size.threshold",
    0,
    whole_number,
    "Bytes of logs below which LogFileSizeBased leaves a file group out",
)
LOG_FILES_MIN = Setting(
    "hoodie.compaction.logfile.num.threshold",
    0,
    whole_number,
    "Log files below which LogFileNumBased leaves a file group out",
)
TARGET_IO_MB = Setting(
    "hoodie.compaction.target.io",
    500 * 1024,
    whole_number,
    "Megabytes that one compaction reads and writes; the file group that crosses it is still taken",
)
TARGET_PARTITIONS = Setting(
    "hoodie.compaction.daybased.target.partitions",
    10,
    whole_number,
    "How many partitions DayBased takes, and how many days back BoundedPartitionAware goes",
)
PARTITION_REGEX = Setting(
    "hoodie.compaction.partition.path.regex",
    "",
    str,
    "What PartitionRegexBased looks for in the path of a partition",
)
TRIGGER = Setting(
    "hoodie.compact.inline.trigger.strategy",
    Trigger.NUM_COMMITS.value,
    one_of(*Trigger),
    "What triggers a compaction that no caller has requested",
    short="trigger",
)
DELTA_COMMITS = Setting(
    "hoodie.compact.inline.max.delta.commits",
    5,
    whole_number,
    "Delta commits after which a compaction is due",
)
DELTA_SECONDS = Setting(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    whole_number,
    "Seconds since the last compaction after which one is due",
)
INLINE = Setting(
    "hoodie.compact.inline",
    False,
    flag,
    "Whether writes schedule a compaction when one is due, and run it",
)
SCHEDULE_INLINE = Setting(
    "hoodie.compact.schedule.inline",
    False,
    flag,
    "Whether writes schedule a compaction when one is due, for another process to run",
)
COMPACTION_SETTINGS: tuple[Setting[object], ...] = (
    STRATEGY,
    LOG_BYTES_MIN,
    LOG_FILES_MIN,
    TARGET_IO_MB,
    TARGET_PARTITIONS,
    PARTITION_REGEX,
    TRIGGER,
    DELTA_COMMITS,
    DELTA_SECONDS,
    INLINE,
    SCHEDULE_INLINE,
)
