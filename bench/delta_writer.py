"""delta-rs as a service that writes; it runs in the environment of `peers.lock`."""

import time
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from tests.interop.lines import serve


def load(table: str, source: str, partition: str | None = None) -> float:
    """The seconds from the path of the rows to a new table."""
    begin = time.perf_counter()
    write_deltalake(table, pq.read_table(source), partition_by=partition)
    return time.perf_counter() - begin


def upsert(table: str, source: str, key: str, ordering: str, partition: str | None = None) -> float:
    """The seconds from the path of the rows to the completed commit."""
    begin = time.perf_counter()
    identity = [key] if partition is None else [partition, key]
    (
        DeltaTable(table)
        .merge(
            pq.read_table(source),
            predicate=" and ".join(f"new.{one} = old.{one}" for one in identity),
            source_alias="new",
            target_alias="old",
        )
        .when_matched_update_all(predicate=f"new.{ordering} >= old.{ordering}")
        .when_not_matched_insert_all()
        .execute()
    )
    return time.perf_counter() - begin


def checksum(table: str, column: str) -> list[int]:
    """How many rows the table has, and what a column adds up to."""
    values = pa.table(DeltaTable(table).to_pyarrow_table(columns=[column]))[column]
    return [len(values), pc.sum(values).as_py()]


def versions() -> str:
    return f"delta-rs {version('deltalake')}"


if __name__ == "__main__":
    serve(lambda: {"load": load, "upsert": upsert, "checksum": checksum, "versions": versions})
