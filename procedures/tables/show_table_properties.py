"""`show_table_properties`: what is stored with a table."""

from collections.abc import Iterable
from dataclasses import dataclass

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


@procedure("show_table_properties")
class ShowTableProperties(Call):
    """The properties of a table as they are stored, by their keys; a row each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = 10
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        key: str
        value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        properties = open_table(caller, self.table, self.path).properties
        for key in sorted(properties):
            yield self.Row(key=key, value=properties[key])
