"""`table_health` and `show_blockers`: what needs attention, and what stands in the way of what."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest, LakewardenError
from lakewarden.engine.services.inspection.state.blockers import Blocker
from lakewarden.engine.services.inspection.state.health import HealthRow
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Options,
    TableName,
    TablePath,
    procedure,
)


@procedure("table_health")
class TableHealth(Call):
    """Figures of a table, each with what it means and the call that mends it."""

    table: TableName = None
    path: TablePath = None
    database: Annotated[str | None, "All tables of a database of the catalog instead."] = None
    limit: Limit = None
    options: Options = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        metric: str
        value: float | None
        unit: str
        threshold: Annotated[float | None, "Above this value it needs attention."]
        verdict: Annotated[str, "ok, attention, shown where there is no threshold, or unreadable"]
        remedy: Annotated[str, "A CALL to copy, where there is one."]
        table: Annotated[str, "Which table it is about."]

    def run(self, caller: Caller) -> Iterable[Row]:
        if self.database is None:
            return self._of_table(caller, self.table, self.path)
        if self.table or self.path:
            raise InvalidRequest(
                "bad_argument",
                what="The call needs either a table or a database.",
                why="A database means all of its tables.",
                now="Leave one of them out.",
                argument="database",
            )
        return self._of_database(caller, self.database)

    def _of_table(self, caller: Caller, table: str | None, path: str | None) -> Iterator[Row]:
        for one in open_table(caller, table, path).health(self.options):
            yield _health_row(one, table or path or "")

    def _of_database(self, caller: Caller, database: str) -> Iterator[Row]:
        """A table that cannot be read is a row; if none can be, the first cause is raised."""
        failed: list[LakewardenError] = []
        tables = caller.tables_in(database)
        for name in tables:
            caller.check_interrupted()
            try:
                yield from tuple(self._of_table(caller, name, None))
            except LakewardenError as error:
                failed.append(error)
                if len(failed) == len(tables):
                    raise failed[0] from None
                yield _unreadable(name, error)


def _health_row(one: HealthRow, table: str) -> TableHealth.Row:
    return TableHealth.Row(
        metric=one.metric,
        value=one.value,
        unit=one.unit,
        threshold=one.threshold,
        verdict=one.verdict.value,
        remedy=one.remedy_sql,
        table=table,
    )


def _unreadable(table: str, error: LakewardenError) -> TableHealth.Row:
    return TableHealth.Row(
        metric=error.code,
        value=None,
        unit="",
        threshold=None,
        verdict="unreadable",
        remedy=str(error),
        table=table,
    )


@procedure("show_blockers")
class ShowBlockers(Call):
    """The instants that hold back clean, archive or compaction, each with the call that helps."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = None
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        blocked_service: str
        instant: Annotated[str | None, "None where settings contradict each other."]
        action: str
        state: str
        age_seconds: float | None
        owner: str | None
        remedy: Annotated[str, "A CALL to copy; empty where waiting is all that helps."]
        reason: str

    def run(self, caller: Caller) -> Iterable[Row]:
        return map(_blocker_row, open_table(caller, self.table, self.path).blockers())


def _blocker_row(one: Blocker) -> ShowBlockers.Row:
    return ShowBlockers.Row(
        blocked_service=one.blocked_service,
        instant=one.instant,
        action=one.action,
        state=one.state,
        age_seconds=one.age_seconds,
        owner=one.owner,
        remedy=one.remedy_sql,
        reason=one.why,
    )
