"""`show_indexes`: the indexes of a table, and how far each is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_indexes")
class ShowIndexes(Call):
    """Show the indexes of a table, those included that are not built yet or never will be."""

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_name: Annotated[str, "As DROP INDEX takes it."]
        partition_name: Annotated[str, "The partition of the metadata table that it is."]
        index_type: str
        columns: Annotated[str, "Separated by commas."]
        state: Annotated[str, "PLANNED, BUILDING, CATCHING_UP, READY, ABANDONED or STALE"]
        instant: Annotated[str | None, "The instant at which it was or will be built, if known."]
        file_groups_count: int
        bytes: int
        owner: Annotated[str | None, "The worker that builds it."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for view in open_table(caller, self.table, self.path).index_states():
            yield self.Row(
                index_name=view.name,
                partition_name=view.partition,
                index_type=view.index_type,
                columns=",".join(view.columns),
                state=str(view.state),
                instant=view.instant,
                file_groups_count=view.file_groups_count,
                bytes=view.bytes,
                owner=view.owner,
            )
