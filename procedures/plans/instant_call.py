"""What the calls about the traces of instants have in common."""

from abc import ABC
from dataclasses import dataclass

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    OnlyInstant,
    TableName,
    TablePath,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.table import Table


@dataclass(frozen=True, kw_only=True)
class InstantCall(Call, ABC):
    """A call about what instants have left on storage, about one of them or all."""

    table: TableName = None
    path: TablePath = None
    instant: OnlyInstant = None
    limit: Limit = None
    filter: Filter = ""

    def opened(self, caller: Caller) -> Table:
        """The table that is named."""
        return open_table(caller, self.table, self.path)
