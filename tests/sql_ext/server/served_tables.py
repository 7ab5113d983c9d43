"""A table that a server's clients ask for."""

from pathlib import Path

import pyarrow as pa

from lakewarden.table import Table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("qty", pa.int32())])


def orders(folder: Path) -> str:
    """A small table with logs, and its path."""
    path = str(folder / "orders")
    table = Table.create(path, SCHEMA, key=["id"], ordering=["ts"], type="mor")
    rows = pa.table({"id": ["1", "2"], "ts": [1, 1], "qty": [2, 3]}, SCHEMA)
    table.upsert(rows)
    table.upsert(rows)
    return path
