"""Every operation that histories are made of; a new capability joins by one line here."""

from collections.abc import Mapping

from tests.histories.changes import DeleteWhere, Merge, MoveWhere, UpdateWhere
from tests.histories.fitting import Cast, Misfit, Widen
from tests.histories.operation import Operation
from tests.histories.services import (
    CancelPlan,
    Clean,
    Expire,
    Run,
    RunPlan,
    Schedule,
    Tended,
    simple_services,
)
from tests.histories.travels import DeleteSavepoint, Restore, Rollback, Savepoint
from tests.histories.unheard import UnheardWrite
from tests.histories.upkeep import (
    OF_ROWS,
    PLAIN,
    CancelIndexing,
    ChangeVersion,
    CreateIndex,
    CreateMetadata,
    DeleteMetadata,
    DropIndex,
    RunIndexing,
    ScheduleIndex,
    SetIndex,
)
from tests.histories.writes import (
    AddColumn,
    Delete,
    DeleteKeys,
    DeletePartitions,
    DropColumn,
    Insert,
    OtherIndex,
    Overwrite,
    StreamBatch,
    Truncate,
    Upsert,
)

_ALL: tuple[Operation, ...] = (
    Upsert(),
    StreamBatch(),
    Insert("insert"),
    Insert("bulk insert"),
    Delete(),
    DeleteKeys(),
    DeleteWhere(),
    UpdateWhere(),
    MoveWhere(),
    Merge(),
    Overwrite("overwrite"),
    Overwrite("overwrite partitions"),
    DeletePartitions(),
    Truncate(),
    AddColumn(),
    DropColumn(),
    OtherIndex(),
    Cast(),
    Widen(),
    Misfit(),
    Tended(),
    Run("compaction"),
    Run("log_compaction", 2),
    Run("clustering"),
    Schedule(),
    RunPlan(),
    CancelPlan(),
    Clean("clean commits"),
    Clean("clean versions"),
    Clean("clean hours", 1),
    *simple_services(),
    Savepoint(),
    DeleteSavepoint(),
    Restore(),
    Rollback(),
    CreateIndex("create index", PLAIN),
    DropIndex("drop index", PLAIN),
    CreateIndex("create row index", OF_ROWS, 3),
    DropIndex("drop row index", OF_ROWS),
    ScheduleIndex(),
    RunIndexing(),
    CancelIndexing(),
    CreateMetadata(),
    DeleteMetadata(),
    ChangeVersion(),
    SetIndex(),
    Expire(),
    UnheardWrite(),
)
OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _ALL}
