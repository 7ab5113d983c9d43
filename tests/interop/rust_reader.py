"""The Rust reader as a service: rows of a table's snapshot."""

import pyarrow as pa
from hudi import HudiTable

from tests.canonical import Row, canonical_rows
from tests.interop.lines import serve


def read(table: str) -> list[Row]:
    """Canonical rows of the latest snapshot; a table without commit has none."""
    try:
        batches = HudiTable(table).read()
    except BaseException as error:
        # A panic in Rust arrives as an exception that is not an `Exception`.
        raise RuntimeError(str(error)) from None
    return canonical_rows(pa.Table.from_batches(batches)) if batches else []


if __name__ == "__main__":
    serve(lambda: {"read": read})
