"""Open builds: the partitions being built that a write reports to, beside those that are ready.

A build that has all its file groups takes what writes say from then on. Into one that has some of
them nothing goes, since keys would go to the wrong group: Java makes them without the lock, so a
write waits a while for a live build of Java's and passes over a dead one.
"""

from collections.abc import Collection, Iterator

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    PARTITION_STATS,
    MetadataTable,
)
from lakewarden.engine.metadata.writing.builds import being_built, builds_on, has_all_groups
from lakewarden.engine.run.ports import Ports

GROUPS_WAIT_SECONDS = 10.0
_LOOK_EVERY_SECONDS = 0.2
# A build of Java gives no sign while it makes file groups: one that began lately may be at work.
_ALIVE_MS = 120_000


def open_builds(state: MetadataTable, unknown: Collection[str], ports: Ports) -> Iterator[str]:
    """The partitions being built that an action can report to; `unknown` are those it cannot."""
    for partition in being_built(state):
        if partition in unknown or _waits_for_another(state, partition):
            continue
        if has_all_groups(state, partition) or _gets_its_groups(state, partition, ports):
            yield partition


def _waits_for_another(state: MetadataTable, partition: str) -> bool:
    """Whether it is made from one that is not there yet, so that only its builder can tell."""
    if partition.startswith(EXPRESSION_INDEX_PREFIX):
        # It has statistics of partitions among those of files.
        return True
    return partition == PARTITION_STATS and not state.config.has_metadata(COLUMN_STATS)


def _gets_its_groups(state: MetadataTable, partition: str, ports: Ports) -> bool:
    """Wait for a live builder to have made all file groups; False where none is at work."""
    until = ports.clock.elapsed_seconds() + GROUPS_WAIT_SECONDS
    while _is_begun_lately(state, partition, ports):
        ports.clock.sleep(_LOOK_EVERY_SECONDS)
        if has_all_groups(state, partition):
            return True
        if ports.clock.elapsed_seconds() >= until:
            raise _groups_missing(partition)
    return False


def _is_begun_lately(state: MetadataTable, partition: str, ports: Ports) -> bool:
    now_ms = ports.clock.now_ms()
    return any(
        files.inflight is not None and abs(now_ms - files.inflight.entry.modified_ms) <= _ALIVE_MS
        for files, names in builds_on(state.data_timeline.active)
        if partition in names
    )


def _groups_missing(partition: str) -> Conflict:
    return Conflict(
        "index_groups_incomplete",
        what=f"The write waited {GROUPS_WAIT_SECONDS:.0f} s for the file groups of {partition!r}.",
        why="Another process is creating them, and keys written before that would be misplaced.",
        now="Nothing was changed. Write again, or drop the index if its build has died.",
        partition=partition,
    )
