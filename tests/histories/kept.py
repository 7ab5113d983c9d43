"""What a table says that it has kept of its past, so that it has to answer for it."""

from dataclasses import dataclass
from typing import Self

from lakewarden import Table


@dataclass(frozen=True, slots=True)
class Kept:
    """How far back a table can be asked; all that is not known is not promised."""

    is_known: bool = False
    earliest_as_of: str = ""
    earliest_changes: str = ""
    earliest_end: str = ""
    savepoints: frozenset[str] = frozenset()

    @classmethod
    def of(cls, table: Table) -> Self:
        """What the table says; nothing, where it can't be asked."""
        if not hasattr(table, "retention"):
            return cls()
        said = table.retention()
        return cls(
            True,
            said.earliest_as_of or "",
            said.earliest_changes or "",
            said.earliest_end or "",
            frozenset(said.savepoints),
        )

    def has_moment(self, point: str) -> bool:
        """Whether the table as of an instant is promised."""
        return self.is_known and (point >= self.earliest_as_of or point in self.savepoints)

    def has_changes_since(self, since: str) -> bool:
        """Whether all states of the table since then are promised, and the changes between them."""
        return self.is_known and since >= max(self.earliest_as_of, self.earliest_changes)

    def has_window(self, since: str, until: str) -> bool:
        """Whether the changes of a window are promised."""
        return self.is_known and (since >= self.earliest_changes or until >= self.earliest_end)
