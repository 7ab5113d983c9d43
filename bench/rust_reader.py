"""hudi-rs as a service; it runs in the environment of the interop tests."""

import time
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiTableBuilder

from tests.interop.lines import serve


def read(table: str) -> float:
    """The seconds to open the table and to get all rows of its snapshot as Arrow batches."""
    begin = time.perf_counter()
    _batches(table)
    return time.perf_counter() - begin


def checksum(table: str, column: str) -> list[int]:
    """How many rows a snapshot has, and what a column adds up to."""
    rows = pa.Table.from_batches(_batches(table))
    return [len(rows), pc.sum(rows[column]).as_py()]


def versions() -> str:
    return f"hudi-rs {version('hudi')}"


def _batches(table: str) -> list[pa.RecordBatch]:
    return HudiTableBuilder.from_base_uri(table).build().read()


if __name__ == "__main__":
    serve(lambda: {"read": read, "checksum": checksum, "versions": versions})
