"""Our own writes on local threads: Parquet files into tables without partitions.

`write` takes what the writers in other processes take, too.
"""

import gc
import time
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.write_workload import CHECKED_COLUMN, KEY, ORDERING, Checksum
from lakewarden.table import Table

GZIP = {"hoodie.parquet.compression.codec": "gzip"}


def write(
    table: str, source: str, operation: str, kind: str, options: Mapping[str, str] | None = None
) -> float:
    """The seconds from the path of the rows to the completed commit; bulk inserts make a table."""
    gc.collect()
    begin = time.perf_counter()
    rows = pq.read_table(source)
    opened = created(table, rows.schema, kind) if operation == "bulk_insert" else Table(table)
    getattr(opened, operation)(rows, options=options or {})
    return time.perf_counter() - begin


def created(table: str, columns: pa.Schema, kind: str) -> Table:
    """A new table with the index that Java has in all cases."""
    return Table.create(table, columns, key=[KEY], ordering=[ORDERING], type=kind, index="SIMPLE")


def checksum(table: str) -> Checksum:
    """How many rows the table has, and what the checked column adds up to."""
    values = Table(table).read_arrow(columns=[CHECKED_COLUMN])[CHECKED_COLUMN]
    return [len(values), pc.sum(values).as_py()]
