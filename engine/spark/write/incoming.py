"""Incoming frames: Spark DataFrames as rows to write, fetched if they are small."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings, flag
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.older_sparks import arrow_of
from lakewarden.engine.spark.write.distributed_frame import DistributedFrame
from lakewarden.engine.spark.write.rewrite_workers import SparkWorkers
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.merge_rules import PartialMode
from lakewarden.engine.write.distributed_rows import BLOCK_SPECULATION, LOCAL_ROWS_MAX
from lakewarden.engine.write.request import Incoming, StreamBatch
from lakewarden.engine.write.streams import Stream, stream_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = "sql.streaming.queryId"
SPECULATION = "spark.speculation"
# A frame that Spark takes for larger is not fetched to see whether it really is.
FETCHED_BYTES_MAX = 64 << 20
# Up to here an error of Spark's guess does no harm, so that all rows may come at once.
SAFE_BYTES_MAX = 16 << 20
# Spark's guess where it knows nothing is the largest of its numbers.
_UNKNOWN_BYTES_MIN = 1 << 60


def is_frame(rows: object) -> "TypeGuard[DataFrame]":
    """Whether rows are a Spark DataFrame, classic or of a Connect session."""
    return any(
        one.__name__ == "DataFrame" and one.__module__.startswith("pyspark.sql")
        for one in type(rows).__mro__
    )


def incoming_frame(
    frame: "DataFrame", location: Location, settings: Settings, config: TableConfig
) -> Incoming | DistributedFrame:
    """The rows, fetched if they are few; otherwise they stay with Spark.

    How many they are is found out by Spark's guess at their size first: what it takes for large is
    not fetched. Of the others no more rows than the limit and one are. Where rows fill up one
    another, all of them are fetched: only then a plan can say what becomes of them. So are those
    that get a key here.
    """
    refuse_speculation(frame, settings)
    if config.merge.partial is not PartialMode.NONE or not config.key_fields:
        return Incoming(fetched(frame))
    limit = settings[LOCAL_ROWS_MAX]
    guess = guessed_bytes(frame)
    if limit and (guess is None or guess <= FETCHED_BYTES_MAX):
        is_safe = guess is not None and guess <= SAFE_BYTES_MAX
        rows = fetched(frame if is_safe else frame.limit(limit + 1))
        if len(rows) <= limit:
            return Incoming(rows, rewrite_workers=SparkWorkers(frame.sparkSession, location))
    check_reachable(location)
    return DistributedFrame(frame, location, fetched(frame.limit(0)).schema)


def batch_of(stream: Stream, rows: object) -> StreamBatch | None:
    """The batch that a caller names; Spark tells which query it belongs to, in a classic session.

    The thread that calls a function of foreachBatch has the query's identity.
    """
    if stream is None:
        return None
    batch = stream_batch(stream)
    if batch.query or not is_frame(rows):
        return batch
    context = getattr(rows.sparkSession, "_sc", None)
    query = None if context is None else context.getLocalProperty(QUERY)
    return replace(batch, query=query or "")


def fetched(frame: "DataFrame") -> pa.Table:
    """All rows of a frame."""
    return arrow_of(frame)


def guessed_bytes(frame: "DataFrame") -> int | None:
    """Spark's guess at the size of a frame; None if it has none, or keeps it for itself."""
    plan = getattr(frame, "_jdf", None)
    if plan is None:
        return None
    statistics = plan.queryExecution().optimizedPlan().stats()
    # A number that fits comes as one, a larger one as an object of Scala.
    guess = int(str(statistics.sizeInBytes()))
    return None if guess >= _UNKNOWN_BYTES_MIN else guess


def refuse_speculation(frame: "DataFrame", settings: Settings) -> None:
    """Two tasks that write the same rows at the same time are one too many."""
    if not settings[BLOCK_SPECULATION]:
        return
    if flag(frame.sparkSession.conf.get(SPECULATION, "false") or "false"):
        raise InvalidRequest(
            "speculative_execution",
            what="Lakewarden does not write through Spark while speculative execution is on.",
            why="The slower of two tasks could leave a file after the commit has cleaned up.",
            now=f"Set {SPECULATION}=false, or {BLOCK_SPECULATION.key}=false if you accept that.",
        )
