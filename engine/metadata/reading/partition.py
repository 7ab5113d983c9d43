"""A partition of the metadata table: lookups routed to the file groups that can hold the keys."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.metadata.encoding.records import Versions, decode_runs
from lakewarden.engine.metadata.reading.file_group import (
    ALL,
    KeySelection,
    MetadataFileGroup,
    beginning_with,
    exactly,
    read_ahead,
)
from lakewarden.engine.run.executor import Executor

# A file group, and keys that hashing sends there.
Share = tuple[MetadataFileGroup, pa.LargeBinaryArray]


class MetadataPartition:
    """All file groups of one partition, in the order that hashing counts them."""

    def __init__(self, groups: Sequence[MetadataFileGroup]) -> None:
        self._groups = tuple(sorted(groups, key=lambda group: group.file_id))

    @property
    def file_groups(self) -> tuple[MetadataFileGroup, ...]:
        return self._groups

    @property
    def file_group_ids(self) -> tuple[str, ...]:
        return tuple(group.file_id for group in self._groups)

    def read_ahead(self) -> None:
        """Read the logs of all groups, and what every look at a base file needs, at once."""
        read_ahead(self._groups)

    def entries_at_most(self) -> int:
        """How many entries there are, where those that logs change count again."""
        self.read_ahead()
        return sum(group.entries_at_most() for group in self._groups)

    def all(self, columns: Sequence[str]) -> Versions:
        """Every version of every key."""
        return self._versions([(group, ALL) for group in self._groups], columns)

    def lookup(self, keys: Sequence[str], columns: Sequence[str]) -> Versions:
        """Every version of the given keys."""
        asked = [(self._groups[number], exactly(chosen)) for number, chosen in self._routed(keys)]
        return self._of_keys(self._versions(asked, columns), set(keys))

    def newest_of(
        self, keys: pa.Array, columns: Sequence[str], executor: Executor
    ) -> Iterator[Versions]:
        """The last versions of many distinct keys, in parts; removed keys have none."""
        return self.newest_among(self.shares(keys), columns, executor)

    def shares(self, keys: pa.Array) -> list[Share]:
        """The file groups that can have some of many distinct keys, each with these."""
        numbers = np.asarray(file_group_index(keys, len(self._groups)))
        octets = keys.cast(pa.large_string()).cast(pa.large_binary())
        return [
            (self._groups[number], octets.filter(pa.array(numbers == number)))
            for number in np.unique(numbers).tolist()
        ]

    def newest_among(
        self, asked_keys: Sequence[Share], columns: Sequence[str], executor: Executor
    ) -> Iterator[Versions]:
        """The same of keys that are shared out already."""
        asked = [(group, KeySelection(among=keys)) for group, keys in asked_keys]
        # What one worker has found is decoded together: each decoding has its fixed cost.
        shares = [asked[first :: executor.workers] for first in range(executor.workers)]
        return executor.map(
            lambda share: self._versions(share, columns).newest(), [one for one in shares if one]
        )

    def lookup_prefixes(
        self, prefixes: Sequence[str], columns: Sequence[str], *, hashed_by_prefix: bool = False
    ) -> Versions:
        """Every version of the keys that begin with one of the prefixes.

        Such keys may be in any group, unless the partition hashes just the prefix.
        """
        if not hashed_by_prefix:
            wanted = beginning_with(prefixes)
            return self._versions([(group, wanted) for group in self._groups], columns)
        asked = [
            (self._groups[number], beginning_with(chosen))
            for number, chosen in self._routed(prefixes)
        ]
        return self._versions(asked, columns)

    def _routed(self, texts: Sequence[str]) -> list[tuple[int, list[str]]]:
        """The numbers of the groups that hashing sends the texts to, each with its texts."""
        if not texts:
            return []
        numbers = np.asarray(file_group_index(pa.array(texts, pa.string()), len(self._groups)))
        return [
            (number, [texts[at] for at in np.flatnonzero(numbers == number).tolist()])
            for number in np.unique(numbers).tolist()
        ]

    def _versions(
        self, asked: Sequence[tuple[MetadataFileGroup, KeySelection]], columns: Sequence[str]
    ) -> Versions:
        read_ahead([group for group, _ in asked])
        runs = [run for group, selection in asked for run in group.runs(selection)]
        return decode_runs(runs, columns)

    def _of_keys(self, versions: Versions, keys: set[str]) -> Versions:
        wanted = pa.array([key.encode() for key in sorted(keys)], type=pa.large_binary())
        inside = pc.is_in(versions.keys, value_set=wanted)
        return versions.take(np.flatnonzero(np.asarray(inside)))
