"""The write workload: a table to load, a batch that changes and adds rows, keys to delete."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.places import built_once
from bench.workloads import DAY_US, FIRST_TS, hex_texts, order_rows

KEY, ORDERING = "id", "ts"
KEY_WIDTH = 32
SEED = 7
ROW_GROUP_ROWS = 122_880
CHECKED_COLUMN = "qty"
# Rows of a table, and what the checked column adds up to.
Checksum = list[int]


@dataclass(frozen=True, slots=True)
class WriteWorkload:
    """How many rows a table has, and what a batch does to it."""

    rows: int
    updates: int
    inserts: int
    deletes: int = 0

    @property
    def batch_rows(self) -> int:
        return self.updates + self.inserts

    def __str__(self) -> str:
        return "-".join(map(str, (self.rows, self.updates, self.inserts, self.deletes)))


@dataclass(frozen=True, slots=True)
class Sources:
    """The Parquet files that all contestants begin with."""

    base: Path
    upsert: Path
    delete: Path

    def loaded(self) -> Checksum:
        """What a table must hold after loading it."""
        return _checksum(_checked(self.base))

    def upserted(self) -> Checksum:
        """What it must hold after the upsert too, where every row of the batch is newer."""
        base, batch = _checked(self.base), _checked(self.upsert)
        kept = base.filter(pc.invert(pc.is_in(base[KEY], batch[KEY])))
        return _checksum(pa.concat_tables([kept, batch]))

    def deleted(self) -> Checksum:
        """What it must hold after loading it and deleting the keys."""
        base = _checked(self.base)
        gone = pq.read_table(self.delete, columns=[KEY])
        return _checksum(base.filter(pc.invert(pc.is_in(base[KEY], gone[KEY]))))


def write_sources(workload: WriteWorkload) -> Sources:
    """The files of a workload, made when they are missing; the same rows every time."""
    folder = built_once(f"write-{workload}", partial(_build, workload=workload))
    return Sources(*(folder / f"{name}.parquet" for name in ("base", "upsert", "delete")))


def _build(folder: Path, workload: WriteWorkload) -> None:
    random = np.random.default_rng(SEED)
    keys = _new_keys(random, workload.rows)
    updated = _some(random, keys, workload.updates)
    changed = pa.concat_arrays([updated, _new_keys(random, workload.inserts)])
    deleted = _some(random, keys, workload.deletes)
    # Newer than every row that is there; a delete carries nothing but its key and its time.
    one_day, ten_days = FIRST_TS + DAY_US, FIRST_TS + 10 * DAY_US
    files = {
        "base": order_rows(random, keys, FIRST_TS),
        "upsert": order_rows(random, _some(random, changed, len(changed)), one_day),
        "delete": pa.table({KEY: deleted, ORDERING: pa.repeat(ten_days, len(deleted))}),
    }
    for name, rows in files.items():
        path = folder / f"{name}.parquet"
        pq.write_table(rows, path, compression="snappy", row_group_size=ROW_GROUP_ROWS)


def _new_keys(random: np.random.Generator, count: int) -> pa.Array:
    return hex_texts(random, count, KEY_WIDTH, dashes=False)


def _some(random: np.random.Generator, keys: pa.Array, count: int) -> pa.Array:
    """So many different ones, in no order."""
    return keys.take(pa.array(random.choice(len(keys), count, replace=False)))


def _checked(path: Path) -> pa.Table:
    return pq.read_table(path, columns=[KEY, CHECKED_COLUMN])


def _checksum(rows: pa.Table) -> Checksum:
    return [len(rows), pc.sum(rows[CHECKED_COLUMN]).as_py()]
