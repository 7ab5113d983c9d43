"""New keys: those that a write has taken for new, by the partitions that it put them into."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.index.incoming import distinct_keys, rows_by_partition
from lakewarden.engine.index.slice_keys import WantedKeys
from lakewarden.engine.table.keygen.keyed_rows import KeyedRows

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewKeys:
    """Some rows of a write, whose keys no other write may bring at the same time.

    With an index over all partitions a key is one wherever it is, otherwise in its partition. The
    keys are copied and hashed when they are first looked for, which is seldom.
    """

    rows: KeyedRows
    places: Places
    is_global: bool

    def of(self, partition: str) -> WantedKeys | None:
        """The keys that may not be in a partition; None where there are none."""
        return self._by_partition.get("" if self.is_global else partition)

    def __bool__(self) -> bool:
        return bool(len(self.places))

    def beside(self, others: KeyedRows, *, are_global: bool) -> "NewKeys":
        """These keys, and all of others that come without rows."""
        mine = replace(self.rows, rows=pa.table({}))
        places = np.concatenate([np.arange(len(others)), self.places + len(others)])
        return NewKeys(others.followed_by(mine), places, is_global=self.is_global or are_global)

    @cached_property
    def _by_partition(self) -> Mapping[str, WantedKeys]:
        if self.is_global:
            return {"": WantedKeys(distinct_keys(self.rows.keys, self.places).keys)}
        new = KeyedRows(
            pa.table({}),
            self.rows.keys.take(pa.array(self.places)),
            self.rows.partitions.take(pa.array(self.places)),
            self.rows.is_delete[self.places],
            self.rows.is_unconditional[self.places],
        )
        return {
            partition: WantedKeys(distinct_keys(new.keys, places).keys)
            for partition, places in rows_by_partition(new).items()
        }
