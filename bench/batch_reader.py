"""Works on a table and prints how much memory that took: a process for `bench.memory`."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lakewarden.table import Table

# Rows that came out, and their bytes in Arrow.
Taken = tuple[int, int]


def main(folder: str, work: str = "batches") -> None:
    base = memory_mb("VmRSS")
    begin = time.perf_counter()
    rows, size = WORKS[work](Table(folder))
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


def _batches(table: Table) -> Taken:
    rows = size = 0
    for batch in table.read_batches():
        rows += len(batch)
        size += batch.nbytes
    return rows, size


def _lookup(table: Table) -> Taken:
    found = table.lookup(["k17"])
    return len(found), found.nbytes


def _compaction(table: Table) -> Taken:
    result = table.compaction.schedule_and_run()
    assert result is not None
    return result.rows_written, 0


WORKS: Mapping[str, Callable[[Table], Taken]] = {
    "batches": _batches,
    "lookup": _lookup,
    "compaction": _compaction,
}


def memory_mb(field: str) -> float:
    """What the system says of this process: `VmRSS` is resident now, `VmHWM` the most ever."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise LookupError(field)


if __name__ == "__main__":
    main(*sys.argv[1:])
