"""DuckLake in DuckDB as a service that writes; it runs in the environment of `peers.lock`.

Its catalog is a DuckDB file beside the rows. Each request attaches it anew, as a process that opens
the table does.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import duckdb
import duckdb_extension_ducklake

from tests.interop.lines import serve

NAME = "lake.orders"
EXTENSION = next(Path(duckdb_extension_ducklake.__file__).parent.rglob("*.duckdb_extension"))


def load(table: str, source: str) -> float:
    """The seconds from the path of the rows to a new table."""
    Path(table).mkdir(parents=True)
    begin = time.perf_counter()
    with _lake(table) as connection:
        connection.execute(f"create table {NAME} as from read_parquet('{source}')")
    return time.perf_counter() - begin


def upsert(table: str, source: str, key: str, ordering: str) -> float:
    """The seconds from the path of the rows to the completed commit."""
    begin = time.perf_counter()
    with _lake(table) as connection:
        connection.execute(f"""
            merge into {NAME} as old using (from read_parquet('{source}')) as new
            on new.{key} = old.{key}
            when matched and new.{ordering} >= old.{ordering} then update
            when not matched then insert
        """)
    return time.perf_counter() - begin


def checksum(table: str, column: str) -> list[int]:
    """How many rows the table has, and what a column adds up to."""
    with _lake(table) as connection:
        return list(connection.sql(f"select count(*), sum({column}) from {NAME}").fetchone())


def versions() -> str:
    return f"DuckLake {version('duckdb-extension-ducklake')} in DuckDB {version('duckdb')}"


@contextmanager
def _lake(table: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(f"load '{EXTENSION}'")
        connection.execute(f"attach 'ducklake:{table}/catalog.db' as lake (data_path '{table}/')")
        yield connection
        connection.execute("detach lake")


if __name__ == "__main__":
    serve(lambda: {"load": load, "upsert": upsert, "checksum": checksum, "versions": versions})
