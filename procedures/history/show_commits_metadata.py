"""`show_commits_metadata`: the writes of a table by file group."""

from collections.abc import Iterable

from lakewarden.engine.services.inspection.history.writes import decode_write, stats_of
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.history.commit_row import StatRow, stat_row


@procedure("show_commits_metadata")
class ShowCommitsMetadata(Call):
    """What completed writes did to each file group, the newest write first."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    Row = StatRow

    def run(self, caller: Caller) -> Iterable[StatRow]:
        history = open_table(caller, self.table, self.path).history()
        for recorded in history.completed(COMPLETED_WRITES):
            for partition, stat in stats_of(decode_write(recorded)):
                yield stat_row(recorded, partition, stat)
