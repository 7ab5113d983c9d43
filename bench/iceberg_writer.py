"""PyIceberg as a service that writes; it runs in the environment of `peers.lock`.

Its catalog is an SQLite file beside the rows.
"""

import time
from importlib.metadata import version
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from tests.interop.lines import serve

NAMESPACE, NAME = "bench", "bench.orders"


def load(table: str, source: str) -> float:
    """The seconds from the path of the rows to a new table."""
    Path(table).mkdir(parents=True)
    begin = time.perf_counter()
    rows = pq.read_table(source)
    catalog = _catalog(table)
    catalog.create_namespace(NAMESPACE)
    catalog.create_table(NAME, rows.schema).append(rows)
    return time.perf_counter() - begin


def upsert(table: str, source: str, key: str, ordering: str) -> float:
    """The seconds from the path of the rows to the completed commit; it knows no ordering."""
    begin = time.perf_counter()
    _catalog(table).load_table(NAME).upsert(pq.read_table(source), join_cols=[key])
    return time.perf_counter() - begin


def checksum(table: str, column: str) -> list[int]:
    """How many rows the table has, and what a column adds up to."""
    values = _catalog(table).load_table(NAME).scan(selected_fields=(column,)).to_arrow()[column]
    return [len(values), pc.sum(values).as_py()]


def versions() -> str:
    return f"PyIceberg {version('pyiceberg')}"


def _catalog(table: str) -> SqlCatalog:
    return SqlCatalog(NAME, uri=f"sqlite:///{table}/catalog.db", warehouse=f"file://{table}")


if __name__ == "__main__":
    serve(lambda: {"load": load, "upsert": upsert, "checksum": checksum, "versions": versions})
