"""Places: the keys and partition paths of some rows, which say what rows of the table they are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import PARTITION_PATH, RECORD_KEY
from lakewarden.engine.write.rows.prepare import has_partition, keyed_rows

_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Keys and partition paths, side by side."""

    keys: pa.StringArray
    partitions: pa.StringArray

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def stored(cls, rows: pa.Table) -> "Places":
        """Those of rows that were read with Hudi's own columns."""
        return cls(
            rows.column(RECORD_KEY).combine_chunks(), rows.column(PARTITION_PATH).combine_chunks()
        )

    def names(self, *, by_partition: bool) -> pa.StringArray:
        """One text for each row, which no other place has; keys alone where the table has them
        once."""
        if not by_partition:
            return self.keys
        return pc.binary_join_element_wise(self.partitions, self.keys, "\n")

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Places":
        mask = pa.array(chosen, pa.bool_())
        return Places(self.keys.filter(mask), self.partitions.filter(mask))

    def are_repeated(self, *, by_partition: bool) -> npt.NDArray[np.bool_]:
        """Which places are there more than once."""
        codes = self.names(by_partition=by_partition).dictionary_encode().indices.to_numpy()
        return np.asarray(np.bincount(codes)[codes] > 1) if len(codes) else np.zeros(0, bool)


def places_of(rows: pa.Table, state: Snapshot) -> Places:
    """The places of rows by their columns; without those of the partition, all are in one place."""
    if not rows.num_columns:
        return Places(pa.array([], pa.string()), pa.array([], pa.string()))
    config, present = state.config, set(rows.column_names)
    fields = (*config.identifying, *(field.name for field in config.partitions.fields))
    if not config.key_fields and RECORD_KEY not in present:
        # Rows that are new will get a key.
        rows = rows.append_column(RECORD_KEY, pa.nulls(len(rows), pa.string()))
        present.add(RECORD_KEY)
    roots = dict.fromkeys(name.split(".")[0] for name in fields)
    telling = rows.select([name for name in roots if name in present])
    matters = has_partition(present, config)
    keyed = keyed_rows(telling, config, state.schema(), deletes=True, partition_matters=matters)
    return Places(keyed.keys, keyed.partitions.cast(pa.string()))


def keys_only(places: Places) -> KeyedRows:
    """Keys without rows."""
    all_of_them = np.ones(len(places), dtype=bool)
    partitions = places.partitions.dictionary_encode()
    return KeyedRows(pa.table({}), places.keys, partitions, all_of_them, all_of_them)


def joined_places(first: Places, second: Places) -> Places:
    return Places(
        pa.concat_arrays([first.keys, second.keys]),
        pa.concat_arrays([first.partitions, second.partitions]),
    )


def refused_keys(places: Places) -> str:
    """A few of the keys, for an error; with their partitions, where the table has some."""
    found = dict.fromkeys(zip(places.keys.to_pylist(), places.partitions.to_pylist(), strict=True))
    shown = [f"{key} in {path}" if path else str(key) for key, path in list(found)[:_SHOWN]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
