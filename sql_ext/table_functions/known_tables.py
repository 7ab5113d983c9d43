"""Known tables: the rows of a function of one table, made where the statement is planned."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.procedures.binding import Row
from lakewarden.procedures.declaring.caller import TableAddress, named_place
from lakewarden.sql_ext.session.statement import Statement
from lakewarden.sql_ext.table_functions.handler import rows
from lakewarden.sql_ext.table_functions.registration import TABLE_FUNCTIONS


@dataclass(frozen=True)
class OneTable(Statement):
    """A statement about one table; the catalog's entry may know more about the way to it."""

    place: TableAddress

    def place_at(self, path: str) -> TableAddress:
        return self.place if path == self.place.path else super().place_at(path)


def known_rows(statement: Statement, function: str, table: str) -> Sequence[Row]:
    """The rows of a function of a table, which is given by its name or path."""
    place = named_place(statement, table, None)
    caller = OneTable(statement.jvm_statement, statement.permissions, statement.settings, place)
    named = TABLE_FUNCTIONS[function.lower()]
    return list(rows(named.procedure, named.arguments, caller, place.path))
