"""Group work: what one file group has to take in during one write."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice


@dataclass(frozen=True, slots=True, eq=False)
class GroupWork:
    """Rows for one file group, as places in the write's `KeyedRows`.

    `updates` are rows whose key the group has, deletes among them; `inserts` are new to it.
    `departures` are rows whose key leaves the group for another partition: the group forgets the
    key whatever the ordering values say.
    """

    key: FileGroupId
    # None begins a new file group.
    slice: FileSlice | None
    updates: npt.NDArray[np.int64]
    inserts: npt.NDArray[np.int64]
    departures: npt.NDArray[np.int64]

    @property
    def row_count(self) -> int:
        return len(self.updates) + len(self.inserts) + len(self.departures)
