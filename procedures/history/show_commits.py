"""`show_commits`: the writes of a table in figures."""

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
from lakewarden.procedures.history.commit_row import CommitRow, commit_row


@procedure("show_commits")
class ShowCommits(Call):
    """The completed writes on the active timeline, newest first; a row each."""

    table: TableName = None
    limit: Limit = 10
    filter: Filter = ""
    path: TablePath = None

    Row = CommitRow

    def run(self, caller: Caller) -> Iterable[CommitRow]:
        history = open_table(caller, self.table, self.path).history()
        return map(commit_row, history.completed(COMPLETED_WRITES))
