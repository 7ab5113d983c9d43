"""Read scopes: the partitions in which a write has searched for the rows that it decides by.

It decides by the rows that it found, and as much by those that were absent. Rows that other writers
insert meanwhile may be in a file group of their own, which the write does not touch. So partitions
are compared, and not file groups.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lakewarden.engine.conflicts.touched_groups import Touched
from lakewarden.engine.file_groups.slices import FileGroupId


class Change(Enum):
    """What may not happen to the rows of a partition while a write decides by them."""

    ROWS_BROUGHT = "brought rows"
    ROWS_TAKEN = "deleted rows"


@dataclass(frozen=True, slots=True, eq=False)
class ReadScope:
    """The partitions that a write has searched, and what other writers may not do there."""

    may_hold: Callable[[str], bool]
    invalidated_by: Change = Change.ROWS_BROUGHT

    @classmethod
    def everywhere(cls) -> "ReadScope":
        return cls(lambda partition: True)

    def invalidated(self, touched: Touched) -> tuple[FileGroupId, ...]:
        """Where another write has changed what this one has seen."""
        changed = touched.brought if self.invalidated_by is Change.ROWS_BROUGHT else touched.taken
        partitions = {path for path in {key.partition for key in changed} if self.may_hold(path)}
        return tuple(sorted(key for key in changed if key.partition in partitions))
