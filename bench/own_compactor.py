"""Our compaction, and the floor beside it, in a process that keeps to so many cores.

`python -m bench.own_compactor CORES`; the floor is the least work any engine must do: stream every
base file and write it again, one batch after the other.
"""

import gc
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.batch_reader import memory_mb
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.context import Context
from tests.interop.lines import serve

SNAPPY = {"hoodie.parquet.compression.codec": "snappy"}
# As Java's row groups are large, reading streams inside of them.
BUFFER_BYTES = 1 << 20
BATCH_ROWS = 122_880
# Columns that repeat their values, which everybody writes as dictionaries.
REPEATING = (
    "_hoodie_commit_time",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "category",
    "city",
    "qty",
    "part",
)


def compact(table: str, cores: int) -> dict[str, float]:
    """From the pending plan to the completed commit."""
    base_mb = memory_mb("VmRSS")
    storage, ports = open_storage(Location(table)), Ports(executor=LocalExecutor(cores))
    settings = Settings.of(arguments=SNAPPY)
    context = Context(storage, open_lock(storage, settings, ports), ports, settings)
    plan = schedule(context, COMPACTION, PlanRequest())
    assert plan
    gc.collect()
    begin, cpu = time.perf_counter(), time.process_time()
    done = execute(context, COMPACTION, plan.instant)
    return {
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        "rows": done.rows_written,
        "base_mb": base_mb,
        "peak_mb": memory_mb("VmHWM"),
    }


def rewrite(table: str, out: str, cores: int) -> dict[str, float]:
    """The base files alone: read, and written again."""
    files = [path for path in sorted(Path(table).rglob("*.parquet")) if ".hoodie" not in str(path)]
    jobs = [(path, Path(out) / f"{number}.parquet") for number, path in enumerate(files)]
    gc.collect()
    begin, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(_stream, jobs))
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}


def _stream(job: tuple[Path, Path]) -> None:
    source, target = job
    file = pq.ParquetFile(source, buffer_size=BUFFER_BYTES, pre_buffer=False)
    repeating = [name for name in file.schema_arrow.names if name in REPEATING]
    with pq.ParquetWriter(
        target, file.schema_arrow, compression="snappy", use_dictionary=repeating
    ) as writer:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            writer.write_batch(batch)


def _commands(cores: int) -> dict[str, Callable[..., Any]]:
    pa.set_cpu_count(cores)
    pa.set_io_thread_count(cores)
    return {
        "compact": lambda table: compact(table, cores),
        "rewrite": lambda table, out: rewrite(table, out, cores),
    }


if __name__ == "__main__":
    serve(lambda: _commands(len(os.sched_getaffinity(0))))
