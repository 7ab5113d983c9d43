"""Reads a table in batches and prints how much memory that took: a process for `bench.memory`."""

import json
import sys
import time
from pathlib import Path

from lakewarden.table import Table


def main(folder: str) -> None:
    base = memory_mb("VmRSS")
    begin, rows, size = time.perf_counter(), 0, 0
    for batch in Table(folder).read_batches():
        rows += len(batch)
        size += batch.nbytes
    print(
        json.dumps(
            {
                "rows": rows,
                "arrow_gb": size / 1e9,
                "seconds": time.perf_counter() - begin,
                "base_mb": base,
                "peak_mb": memory_mb("VmHWM"),
            }
        )
    )


def memory_mb(field: str) -> float:
    """What the system says of this process: `VmRSS` is resident now, `VmHWM` the most ever."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise LookupError(field)


if __name__ == "__main__":
    main(sys.argv[1])
