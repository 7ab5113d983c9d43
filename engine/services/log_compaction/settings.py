"""Log compaction's settings: Hudi's own keys and defaults."""

from lakewarden.engine.kernel.settings import Setting, flag, whole_number

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
