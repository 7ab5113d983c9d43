"""Upkeep: what a write does for the metadata table before it tells its own change."""

from lakewarden.engine.kernel.settings import Setting, Settings
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.compact import (
    DELTACOMMITS_MAX,
    DELTACOMMITS_MAX_WHEN_PENDING,
    pending_compactions,
    plan_if_due,
    refuse_growth,
)
from lakewarden.engine.metadata.writing.deltacommit import Weight, withdraw_strays
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
    state: MetadataTable,
    config: TableConfig,
    settings: Settings,
    times: TimeSource,
    ports: Ports,
    known: Weight | None = None,
) -> bool:
    """Withdraw what others have left, and plan a compaction or compact logs if it is time; whether
    anything has changed.

    Step `metadata-write.upkeep`. A table that cannot be compacted, and has grown beyond what is
    set, is refused. A compaction is carried out without the lock: its plan comes before what the
    write tells, so that the newest write can always be rolled back.
    """
    refuse_growth(state, settings)
    most = settings[DELTACOMMITS_MAX]
    if not (settings[LOG_COMPACTION_ENABLED] or _has_left(state)):
        return plan_if_due(state, config, times, most, known)
    # What is done here is not undone with a write that comes too late, so that it looks anew.
    state = state.again()
    if withdraw_strays(state) or withdraw_log_compactions(state):
        return True
    if plan_if_due(state, config, times, most, known):
        return True
    if not settings[LOG_COMPACTION_ENABLED] or pending_compactions(state):
        return False
    draft = draft_log_compaction(state, config, times, blocks_min=settings[LOG_BLOCKS_MIN])
    if draft.instant is None:
        return False
    compact_logs(state, draft, ports)
    return True


def _has_left(state: MetadataTable) -> bool:
    """Whether there seems to be anything to withdraw."""
    is_log_compacted = bool(state.timeline.active.pending((Action.LOG_COMPACTION,)))
    return is_log_compacted or bool(state.validity.strays())
