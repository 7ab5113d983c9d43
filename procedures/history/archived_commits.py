"""`show_archived_commits`: writes, of the archived timeline too."""

from collections.abc import Iterable

from lakewarden.engine.services.inspection.history.history import decode_write, stats_of
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.history.arguments import EndTime, StartTime, span_of
from lakewarden.procedures.history.commits import (
    ArchivedCommitRow,
    StatRow,
    archived_commit_row,
    stat_row,
)


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


@procedure("show_archived_commits_metadata")
class ShowArchivedCommitsMetadata(Call):
    """What archived writes did to each file group, the newest write first."""

    table: TableName = None
    limit: Limit = 10
    start_ts: StartTime = ""
    end_ts: EndTime = ""
    filter: Filter = ""
    path: TablePath = None

    Row = StatRow

    def run(self, caller: Caller) -> Iterable[StatRow]:
        history = open_table(caller, self.table, self.path).history()
        span = span_of(self.start_ts, self.end_ts, history.zone)
        for recorded in history.archived(COMPLETED_WRITES, span):
            for partition, stat in stats_of(decode_write(recorded)):
                yield stat_row(recorded, partition, stat)
