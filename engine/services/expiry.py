"""Expiry: partitions that nothing has been written to for so long that they may go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakewarden.engine.index.latest_slices import latest_file_slices
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, one_of, whole_number
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import epoch_ms

_DAY_MS = 24 * 3600 * 1000

KEEP_BY_TIME = "KEEP_BY_TIME"
POLICY: Setting[str] = Setting(
    "hoodie.partition.ttl.strategy.type",
    KEEP_BY_TIME,
    one_of(KEEP_BY_TIME),
    "What decides when partitions expire: their last write",
)
# Zero stands for not set, as no table needs it.
DAYS_RETAINED: Setting[int] = Setting(
    "hoodie.partition.ttl.strategy.days.retain",
    0,
    whole_number,
    "How many days after its last write a partition expires; 0 for never",
)
EXPIRY_SETTINGS: tuple[Setting[object], ...] = (POLICY, DAYS_RETAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRetention:
    """How long partitions stay."""

    days: int

    @classmethod
    def of(cls, settings: Settings) -> "PartitionRetention":
        """What is set; without a number of days nothing may go."""
        days = settings[DAYS_RETAINED]
        if settings[POLICY] != KEEP_BY_TIME or days < 1:
            raise InvalidRequest(
                "no_retention",
                what="Lakewarden cannot tell which partitions have expired.",
                why="Neither the call nor the table says how many days to keep them.",
                now=f"Give retain_days => 30, or set {DAYS_RETAINED.key}.",
            )
        return cls(days=days)


def last_writes(state: Snapshot) -> Mapping[str, int]:
    """When each partition was written to last, by the files that readers see now."""
    zone = state.config.layout.zone
    newest: dict[str, int] = {}
    for slice_ in latest_file_slices(state, None):
        times = [slice_.base_instant, *(log.instant for log in slice_.log_files)]
        # A time that can't be read counts as new.
        moments = [epoch_ms(time, zone) for time in times]
        known = [snapshot for snapshot in moments if snapshot is not None]
        at_ms = max(known) if len(known) == len(moments) else _NEVER_EXPIRES
        newest[slice_.partition] = max(newest.get(slice_.partition, 0), at_ms)
    return newest


def expired(state: Snapshot, retention: PartitionRetention, now_ms: int) -> Mapping[str, int]:
    """The partitions that may go, each with the time of the last write to it.

    A table without partitions never goes as a whole.
    """
    if not state.config.partitions.fields:
        return {}
    before = now_ms - retention.days * _DAY_MS
    return {path: at for path, at in sorted(last_writes(state).items()) if at < before}


def expiring(retention: PartitionRetention, now_ms: int) -> Callable[[Snapshot], tuple[str, ...]]:
    """Which partitions a write takes away, asked when it is clear on which state it builds."""
    return lambda state: tuple(expired(state, retention, now_ms))


_NEVER_EXPIRES = 1 << 62
