"""Gathering: what the files and rows of a table say to indexes that are built now."""

from dataclasses import dataclass

from lakewarden.engine.metadata.building.create import BuildOptions
from lakewarden.engine.metadata.entries.changes import Located, TableChange
from lakewarden.engine.metadata.entries.summaries import chosen_columns
from lakewarden.engine.metadata.reading.table import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from lakewarden.engine.services.indexing.present import (
    PresentTable,
    has_renamed_columns,
    refuse_repeated,
)
from lakewarden.engine.services.indexing.refusals import renamed_columns
from lakewarden.engine.services.indexing.request import WantedIndex
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.schema import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakewarden.engine.transaction.state.context import Context

_OWN_COLUMNS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
# Before the first write there is no instant to name.
_NEVER = "00000000000000000"


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the files and rows say, for the partitions that are to be built."""

    present: TableChange
    located: tuple[Located, ...]
    choices: BuildOptions

    @property
    def records_count(self) -> int:
        return sum(len(one.keys) for one in self.located)


def gather(context: Context, snapshot: Snapshot, wanted: list[WantedIndex]) -> Gathered:
    """What the wanted partitions begin with; what cannot be indexed is refused here."""
    present = PresentTable(snapshot, context.ports.executor)
    by_partition = {one.partition: one for one in wanted}
    columns: tuple[str, ...] = ()
    if COLUMN_STATS in by_partition:
        if has_renamed_columns(snapshot):
            raise renamed_columns(snapshot.config)
        columns = statistics_columns(context, snapshot, by_partition[COLUMN_STATS])
    located: tuple[Located, ...] = ()
    index = by_partition.get(RECORD_INDEX)
    if index is not None:
        located = present.located()
        refuse_repeated(located, is_partitioned=index.is_partitioned)
    wants_files = columns or not snapshot.config.has_metadata(FILES)
    change = TableChange(
        instant=newest_write(snapshot) or _NEVER,
        new_files=present.files(columns) if wants_files else (),
        live_files=present.live_files() if PARTITION_STATS in by_partition else {},
    )
    choices = BuildOptions(
        columns=columns or None,
        is_record_index_partitioned=index is not None and index.is_partitioned,
        settings=context.settings,
    )
    return Gathered(change, located, choices)


def statistics_columns(context: Context, state: Snapshot, wanted: WantedIndex) -> tuple[str, ...]:
    """The columns that wanted statistics are of, those of the table itself among them."""
    has_meta_fields = state.config.has_meta_fields
    if not wanted.columns:
        return chosen_columns(state.schema().columns, context.settings, state.config)
    own = [name for name in wanted.columns if name not in META_COLUMNS]
    return (*(_OWN_COLUMNS if has_meta_fields else ()), *own)


def newest_write(snapshot: Snapshot) -> str | None:
    """The time of the newest completed write on the active timeline."""
    completed = snapshot.timeline.active.completed()
    return max((one.requested for one in completed), default=None)
