"""What the calls about cleans have in common."""

from abc import ABC
from dataclasses import dataclass

from lakewarden.engine.services.inspection.history.history import History
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, Filter, Limit, TableName, TablePath
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.history.arguments import ShowArchived


@dataclass(frozen=True, kw_only=True)
class CleanCall(Call, ABC):
    """A call about the cleans of a table, with Hudi's arguments."""

    table: TableName = None
    limit: Limit = 10
    show_archived: ShowArchived = False
    filter: Filter = ""
    path: TablePath = None

    def history(self, caller: Caller) -> History:
        """What the table's instants have to say."""
        return open_table(caller, self.table, self.path).history()
