"""`commits_compare`: how far a table is ahead of a copy of it, or behind."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.history.ahead import Lead, compare
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, procedure
from lakewarden.procedures.declaring.opening import open_table


@procedure("commits_compare")
class CommitsCompare(Call):
    """Compare the newest writes of two tables; one row that says which lacks what."""

    table: Annotated[str, "The table's name in the catalog, or its path."]
    path: Annotated[str, "The path of the table that it is compared with."]

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        compare_detail: Annotated[str, "In words, with the instants to catch up with."]

    def run(self, caller: Caller) -> Iterable[Row]:
        one = open_table(caller, self.table, None)
        other = open_table(caller, None, self.path)
        lead = compare(one.history(), other.history())
        yield self.Row(compare_detail=_said(one.config.name or self.table, lead))


def _said(name: str, lead: Lead) -> str:
    place = "ahead" if lead.is_ahead else "behind"
    instants = ", ".join(lead.instants)
    return (
        f"Source {name} is {place} by {len(lead.instants)} commits."
        f" Commits to catch up - [{instants}]"
    )
