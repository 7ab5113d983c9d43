"""Compaction's settings: Hudi's own keys and defaults."""

from lakewarden.engine.kernel.settings import Setting, flag, one_of, whole_number
from lakewarden.engine.services.compaction.triggers import Trigger

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
