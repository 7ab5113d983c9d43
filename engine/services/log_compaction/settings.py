"""Log compaction's settings: Hudi's own keys and defaults."""

from lakewarden.engine.kernel.settings import Setting, flag, whole_number

ENABLED = Setting(
    "hoodie.log.compaction.enable",
    False,
    flag,
    "Whether log compaction belongs to the services that nobody asks for explicitly",
)
INLINE = Setting(
    "hoodie.log.compaction.inline",
    False,
    flag,
    "Whether writes schedule a log compaction, and carry it out",
)
BLOCKS_MIN = Setting(
    "hoodie.log.compaction.blocks.threshold",
    5,
    whole_number,
    "Blocks in the logs of a file group from which on they are compacted into one; those that an"
    " earlier log compaction has put together count as its own only",
)
LOG_COMPACTION_SETTINGS: tuple[Setting[object], ...] = (ENABLED, INLINE, BLOCKS_MIN)
