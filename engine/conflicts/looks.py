"""Looks: where a write has searched for rows that it decides by.

It decides by those that it has found, and as much by those that were not there. What others bring
meanwhile may be in a file group of its own, which the write does not touch: the partition tells.
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
class Look:
    """The partitions that a write has looked into, and what others may not do there."""

    may_hold: Callable[[str], bool]
    spoilt_by: Change = Change.ROWS_BROUGHT

    @classmethod
    def everywhere(cls) -> "Look":
        return cls(lambda partition: True)

    def spoilt(self, touched: Touched) -> tuple[FileGroupId, ...]:
        """Where another write has changed what this one has seen."""
        changed = touched.brought if self.spoilt_by is Change.ROWS_BROUGHT else touched.taken
        partitions = {path for path in {key.partition for key in changed} if self.may_hold(path)}
        return tuple(sorted(key for key in changed if key.partition in partitions))
