"""Writes a table over Spark Connect, by a small frame and by workers, has workers compact it, calls
another write off, and prints what the table has then.

Run as a process of its own, since a process has either a classic session or a remote one.
"""

import sys
from contextlib import suppress

from pyspark.sql import SparkSession

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from lakewarden.engine.spark.service_tasks import SparkExecutor
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.transaction.state.context import Context
from tests.engine.spark.failing_tasks import Doomed
from tests.engine.spark.slow_frames import FREE_AFTER_SECONDS, seconds_to_let_go, slow_frame
from tests.writing.model import contents_of
from tests.writing.shapes import Shape


def compact(path: str, spark: SparkSession) -> None:
    """Merge the logs by workers of the session, which also stop when they are told to."""
    executor = SparkExecutor(spark, "compaction")
    storage, ports, settings = open_storage(Location(path)), Ports(executor=executor), Settings()
    context = Context(storage, open_lock(storage, settings, ports), ports, settings)
    plan = schedule(context, COMPACTION, PlanRequest())
    assert plan
    execute(context, COMPACTION, plan.instant)
    assert not any(slice_.log_files for slice_ in Table(path).file_slices())
    with suppress(Conflict):
        list(executor.map(Doomed(), [300.0]))


def call_off(path: str, spark: SparkSession) -> None:
    """A write by workers is cancelled: its caller is free soon."""
    table = Shape("cow", is_partitioned=False, has_metadata=False).create(path)
    frame = slow_frame(spark, path)
    seconds = seconds_to_let_go(
        path, lambda: table.upsert(frame, local_rows_max=0), makes_file=False
    )
    assert seconds < FREE_AFTER_SECONDS, seconds


def main(server: str, path: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    table = Shape("mor").create(path)
    for rows_max, count in ((100, 3), (0, 5)):
        frame = spark.range(count).selectExpr(
            "string(id) AS id", "'a' AS p", f"{count}L AS ts", "0.5D AS v", "'n' AS name"
        )
        table.upsert(frame, local_rows_max=rows_max)
    compact(path, spark)
    call_off(f"{path}_called_off", spark)
    print([(row["id"], row["ts"]) for row in contents_of(Table(path).read_arrow())], end="")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
