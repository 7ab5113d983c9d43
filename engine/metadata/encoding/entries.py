"""Entries: what one commit says to a shard, and how that is split over its file groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.metadata.encoding.records import EMPTY_BINARY

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Keys with their encoded values, and keys to remove.

    Values that many keys share are held once: `places` says which value each key has. Of a
    repeated key the last entry counts, and a key that gets a value is not removed.
    """

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    places: Places
    removed: pa.LargeBinaryArray
    # What is hashed instead of the keys, and instead of the removed ones.
    routes: tuple[pa.Array, pa.Array] | None = None

    @classmethod
    def of(
        cls, keys: Sequence[str], values: pa.LargeBinaryArray, removed: Sequence[str] = ()
    ) -> "Entries":
        """Entries with a value for each key."""
        return cls(_binaries(keys), values, np.arange(len(keys)), _binaries(removed))

    def __bool__(self) -> bool:
        return bool(len(self.keys) or len(self.removed))

    def routed(self, group_count: int) -> Iterator[tuple[int, "Entries"]]:
        """The touched file groups by number, each with its entries: sorted by key, keys unique."""
        keys, gone = self.routes or (self.keys, self.removed)
        added, removed = _split(keys, group_count), _split(gone, group_count)
        nothing = np.zeros(0, np.int64)
        for number in sorted(added.keys() | removed.keys()):
            yield number, self._of_group(added.get(number, nothing), removed.get(number, nothing))

    def _of_group(self, added: Places, removed: Places) -> "Entries":
        keys, gone = self.keys.take(pa.array(added)), self.removed.take(pa.array(removed))
        return Entries(keys, self.values, self.places[added], gone).in_order()

    def in_order(self) -> "Entries":
        """The entries of one file group, as `routed` hands them over."""
        kept = last_of_each(self.keys)
        keys = self.keys.take(pa.array(kept))
        gone = self.removed.take(pa.array(last_of_each(self.removed)))
        if len(keys) and len(gone):
            gone = gone.filter(pc.invert(pc.is_in(gone, value_set=keys)))
        return Entries(keys, self.values, self.places[kept], gone)

    def own_values(self) -> pa.LargeBinaryArray:
        """The value of each key."""
        return self.values.take(pa.array(self.places))


def joined(parts: Sequence[Entries]) -> Entries:
    """What several say, as one; none of them is routed by anything but its keys."""
    firsts = np.cumsum([0, *(len(one.values) for one in parts)])
    return Entries(
        pa.concat_arrays([one.keys for one in parts]),
        pa.concat_arrays([one.values for one in parts]),
        np.concatenate([one.places + first for one, first in zip(parts, firsts, strict=False)]),
        pa.concat_arrays([one.removed for one in parts]),
    )


NO_ENTRIES = Entries(EMPTY_BINARY, EMPTY_BINARY, np.zeros(0, np.int64), EMPTY_BINARY)


def _binaries(texts: Sequence[str]) -> pa.LargeBinaryArray:
    return pa.array([text.encode() for text in texts], pa.large_binary())


def _split(keys: pa.Array, group_count: int) -> dict[int, Places]:
    return places_of_groups(file_group_index(keys, group_count))


def places_of_groups(numbers: Places) -> dict[int, Places]:
    """The places of the keys of each file group, in their order."""
    if not len(numbers):
        return {}
    numbers = numbers.astype(np.int32)
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(order, starts[1:])
    return dict(zip(found.tolist(), parts, strict=True))


def last_of_each(keys: pa.LargeBinaryArray) -> Places:
    """The places of the keys in ascending order, for a repeated key only its last one."""
    order = pc.sort_indices(keys)
    ascending = keys.take(order)
    places: Places = order.to_numpy().astype(np.int64)
    if len(keys) < 2:
        return places
    following = ascending.slice(1)
    is_last = np.ones(len(keys), np.bool_)
    is_last[:-1] = pc.not_equal(ascending.slice(0, len(keys) - 1), following).to_numpy(
        zero_copy_only=False
    )
    return places[is_last]
