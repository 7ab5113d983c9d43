"""What a write knows of its rows and of the table before it begins an instant."""

from dataclasses import dataclass, field

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.conflicts.strategies import strategy_of
from lakewarden.engine.index.kinds import Identity, IndexChoice, KeyScope
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.metadata.entries.row_indexes import RowIndexes
from lakewarden.engine.metadata.reading.definitions import IndexDefinition
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import TableConfig, TableType
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.distributed_rows import PreparedDistributedRows, RewriteWorkers
from lakewarden.engine.write.request import Effect, Findings, Placement, WriteRequest
from lakewarden.engine.write.routing.sizes import INSERTS_TO_LOGS
from lakewarden.engine.write.streams import Turn


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Rows that are fit to be written, and the table as it was when they were."""

    state: Snapshot
    # The table's schema before the write, and the one to write with.
    current: TableSchema
    schema: TableSchema
    index: IndexChoice
    rows: KeyedRows
    identity: Identity
    indexes: tuple[IndexDefinition, ...] = ()
    row_indexes: RowIndexes = field(default_factory=RowIndexes)
    # Where the rows are, if only what the plan sees of them is here.
    distributed: PreparedDistributedRows | None = None
    rewrite_workers: RewriteWorkers | None = None
    # What the write does, if its rows tell and not only the files.
    effect: Effect | None = None
    placement: Placement | None = None
    # What the rows follow from.
    findings: Findings = field(default_factory=Findings)
    # Whether a commit would say nothing.
    is_nothing: bool = False
    # The turn of the batch that the rows are, if they are one of a stream.
    turn: Turn | None = None

    @property
    def config(self) -> TableConfig:
        return self.state.config

    @property
    def has_partitioned_record_index(self) -> bool:
        return any(one.partition == RECORD_INDEX and one.is_partitioned for one in self.indexes)

    @property
    def has_one_place(self) -> bool:
        """Whether there are partitions, and a record index that tells of one place of each key."""
        has_index = self.config.has_metadata(RECORD_INDEX) and self.config.is_partitioned
        return has_index and not self.has_partitioned_record_index

    @property
    def may_repeat_keys(self) -> bool:
        """Whether keys may be in several partitions, and the record index tells of one place."""
        return self.has_one_place and self.identity.scope is KeyScope.PARTITION

    def fills_logs(self, settings: Settings, request: WriteRequest) -> bool:
        """Whether logs of file groups take in new rows: only where the index has found the keys."""
        is_found = request.finds_keys and self.index.tells_lives
        is_on = settings[INSERTS_TO_LOGS] and self.config.table_type is TableType.MERGE_ON_READ
        return is_on and is_found

    def strategy(self, settings: Settings) -> ConflictStrategy:
        """How the write conflicts with others."""
        return strategy_of(settings, has_bucket_index=self.index.buckets is not None)
