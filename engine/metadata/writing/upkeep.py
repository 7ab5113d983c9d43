"""Upkeep: what a write does for the metadata table before it tells its own change."""

from lakewarden.engine.kernel.settings import Setting, Settings
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.compact import (
    DELTACOMMITS_MAX,
    DELTACOMMITS_MAX_WHEN_PENDING,
    compact_if_due,
    deltacommits_since,
    refuse_growth,
)
from lakewarden.engine.metadata.writing.deltacommit import withdraw_strays
from lakewarden.engine.metadata.writing.log_compact import (
    LOG_BLOCKS_MIN,
    LOG_COMPACTION_ENABLED,
    compact_logs,
    draft_log_compaction,
    withdraw_log_compactions,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.next_time import TimeSource

UPKEEP_SETTINGS: tuple[Setting[object], ...] = (
    DELTACOMMITS_MAX,
    DELTACOMMITS_MAX_WHEN_PENDING,
    LOG_COMPACTION_ENABLED,
    LOG_BLOCKS_MIN,
)


def keep_up(
    state: MetadataTable, config: TableConfig, settings: Settings, times: TimeSource, ports: Ports
) -> bool:
    """Compact the metadata table if it is time, else its logs; whether anything has changed.

    Step `metadata-write.upkeep`. What crashes have left is finished or withdrawn first. A table
    that cannot be compacted, and has grown beyond what is set, is refused.
    """
    refuse_growth(state, settings)
    most = settings[DELTACOMMITS_MAX]
    if not (settings[LOG_COMPACTION_ENABLED] or _is_due(state, most)):
        return False
    # What is done here is not undone with a write that comes too late, so that it looks anew.
    state = state.again()
    # The state shows what is withdrawn here, so a compaction that is due waits for the next write.
    if withdraw_strays(state) or withdraw_log_compactions(state):
        return True
    if compact_if_due(state, config, times, ports, deltacommits_max=most):
        return True
    if not settings[LOG_COMPACTION_ENABLED]:
        return False
    draft = draft_log_compaction(state, config, times, blocks_min=settings[LOG_BLOCKS_MIN])
    if draft.instant is None:
        return False
    compact_logs(state, draft, ports)
    return True


def _is_due(state: MetadataTable, deltacommits_max: int) -> bool:
    """Whether there seems to be anything to finish, to withdraw or to compact."""
    has_left = any(
        files.completed is None and files.started_as is not Action.DELTA_COMMIT
        for files in state.timeline.active.files
    )
    return (
        has_left or bool(state.validity.strays()) or deltacommits_since(state) >= deltacommits_max
    )
