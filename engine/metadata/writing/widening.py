"""Widening: statistics of partitions that were made without what a slower write brings.

Readers, Java's too, take the entries of later instants for newer. An instant may complete after a
later one, which has made the statistics of a partition without the files of the first: readers
would leave these out. So a write that completes late widens what later instants have said.
"""

from collections.abc import Iterable, Iterator

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.formats.instant_metadata import commit, replace
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.content import ChangeContent
from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.deltacommit import Content, write_late
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.timeline.instants.instant import Action, Instant

# Services have the same rows in other files: what was said without these holds for them.
_SAME_ROWS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
# Numbers of as many digits are in one order for all readers, also for those that compare texts.
_FIRST = 100_000


def widen_later(
    content: ChangeContent, partitions: Iterable[str], ports: Ports, *, by: int = 2
) -> None:
    """Step `metadata-write.widen`: before a change is reported, make room at later instants.

    What is said then is wide whether or not the change completes. `by` tells callers apart that
    may do so at the same time.
    """
    state, change = content.state, content.change
    later = list(_later(state, change)) if change.new_files and change.live_files else []
    wider = {one: content.wider_of(one) for one in partitions} if later else {}
    said: Content = {one: shards for one, shards in wider.items() if any(shards.values())}
    for instant in later if said else ():
        logs = (file for one in said for file in state.files(one) if isinstance(file, LogFile))
        count = sum(log.instant == instant.requested for log in logs)
        write_late(state, instant.requested, said, (by, _FIRST + count), ports)


def _later(state: MetadataTable, change: TableChange) -> Iterator[Instant]:
    """The later instants that have said something of one of the partitions of a change.

    What lies below a compaction of the metadata table lies below what is reported now.
    """
    active, own = state.data_timeline.active, state.timeline.active
    if any(
        one.started_as in _SAME_ROWS
        for one in active.files
        if one.instant.requested == change.instant
    ):
        return
    compactions = (one for one in own.files if one.started_as is Action.COMPACTION)
    below = max((one.instant.requested for one in compactions), default="")
    for instant in active.completed():
        if not (instant.action.is_write and instant.requested > change.instant):
            continue
        is_above = (state.timeline.completion_time(instant.requested) or "") > below
        if is_above and change.live_files.keys() & _partitions(state, instant):
            yield instant


def _partitions(state: MetadataTable, instant: Instant) -> frozenset[str]:
    active = state.data_timeline.active
    is_replace = instant.action is Action.REPLACE_COMMIT
    content, path = active.read(instant), active.path(instant)
    if not is_replace:
        return frozenset(commit.decode(content, path).partition_to_write_stats)
    done = replace.decode(content, path)
    return frozenset((*done.partition_to_write_stats, *done.partition_to_replace_file_ids))
