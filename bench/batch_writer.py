"""Upserts a Parquet file into a table and prints how much memory that took: a process for
`bench.write_memory`.
"""

import json
import sys
import time

import pyarrow.parquet as pq

from bench.batch_reader import memory_mb
from lakewarden.table import Table


def main(table: str, source: str) -> None:
    base = memory_mb("VmRSS")
    begin = time.perf_counter()
    rows = pq.read_table(source)
    Table(table).upsert(rows)
    print(
        json.dumps(
            {
                "rows": len(rows),
                "arrow_gb": rows.nbytes / 1e9,
                "seconds": time.perf_counter() - begin,
                "base_mb": base,
                "peak_mb": memory_mb("VmHWM"),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
