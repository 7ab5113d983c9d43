"""`show_indexes`: the indexes of a table, and how far each is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TableName, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("show_indexes")
class ShowIndexes(Call):
    """Show the indexes of a table, those included that are not built yet or never will be.

    PLANNED: writers report to it. BUILDING: its base files are made. CATCHING_UP: what has not
    reported to it is added. READY: reads use it. ABANDONED: no process works on it. STALE: it is
    listed as ready and does not know of all writes, so that reads by key leave it out.
    """

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
        owner: Annotated[str | None, "The worker that builds it, or has left it."]
        indexed_up_to: Annotated[str | None, "The write that its base files go up to."]
        caught_up_to: Annotated[str | None, "The newest write up to which it knows of all."]
        lag_count: Annotated[int | None, "Later instants that it does not know of, if known."]
        entries_count: Annotated[int, "At most: what logs have changed counts again."]
        step: Annotated[str | None, "What the worker is doing."]
        done_ratio: Annotated[float | None, "How many of its base files are there, from 0 to 1."]
        waits_for: Annotated[str | None, "The instant that holds up its catch-up."]
        reason: Annotated[str | None, "Why it is ABANDONED or STALE, or not used."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for view in open_table(caller, self.table, self.path).index_states():
            yield self.Row(
                index_name=view.name,
                partition_name=view.partition,
                index_type=view.index_type,
                columns=",".join(view.columns),
                state=str(view.state),
                instant=view.instant,
                indexed_up_to=view.indexed_up_to,
                caught_up_to=view.caught_up_to,
                lag_count=view.lag_count,
                entries_count=view.entries_count,
                file_groups_count=view.file_groups_count,
                bytes=view.bytes,
                owner=view.owner,
                step=view.step,
                done_ratio=view.done_ratio,
                waits_for=view.waits_for,
                reason=view.reason,
            )
