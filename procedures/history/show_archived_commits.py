"""`show_archived_commits`: the archived writes of a table in figures."""

from collections.abc import Iterable

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
from lakewarden.procedures.history.arguments import EndTime, StartTime
from lakewarden.procedures.history.commit_row import ArchivedCommitRow, archived_commit_row
from lakewarden.procedures.history.spans import span_of


@procedure("show_archived_commits")
class ShowArchivedCommits(Call):
    """The writes that have left the active timeline, newest first; a row each."""

    table: TableName = None
    limit: Limit = 10
    start_ts: StartTime = ""
    end_ts: EndTime = ""
    filter: Filter = ""
    path: TablePath = None

    Row = ArchivedCommitRow

    def run(self, caller: Caller) -> Iterable[ArchivedCommitRow]:
        history = open_table(caller, self.table, self.path).history()
        span = span_of(self.start_ts, self.end_ts, history.zone)
        return map(archived_commit_row, history.archived(COMPLETED_WRITES, span))
