"""The writer of the data source: workers hand over their rows, and one process writes them.

Spark starts the tasks of a data source without asking anybody for a plan, so that they can't know
which file group a row belongs to. Their rows come together in the process that commits, as those of
a small frame do; larger ones are refused with the call that writes them in workers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.reports import packed_table, unpacked_table
from lakewarden.engine.spark.write.incoming import QUERY
from lakewarden.engine.storage.port import Location
from lakewarden.engine.write.request import StreamBatch
from lakewarden.engine.write.settings import EVOLVE
from lakewarden.source_options import arrow_columns, check_options, save, saved_table
from lakewarden.streaming import named_batch

TASK_BYTES_MAX = 128 << 20
STREAM_NAME = "lakewarden.stream.name"
_CHECKPOINT = "checkpointlocation"
_OF_STREAMS = ("upsert", "insert", "delete")
# Releases before 4.1 hand over rows only; there foreachBatch is the way.
_StreamArrowWriter = getattr(datasource, "DataSourceStreamArrowWriter", object)


@dataclass
class HandedOver(WriterCommitMessage):
    """The rows of one task, and the streaming query that it belongs to, if to any."""

    packed: bytes
    query: str = ""


class FrameWriter(DataSourceArrowWriter):
    """Appends by upsert, or puts rows in the place of all that the table has."""

    def __init__(
        self,
        location: Location,
        options: Mapping[str, str],
        schema: StructType,
        *,
        overwrites: bool,
    ) -> None:
        check_reachable(location)
        self._location = location
        self._options = dict(options)
        self._schema = arrow_columns(schema)
        self._overwrites = overwrites
        self._operation = check_options(self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> HandedOver:
        batches, size_bytes = [], 0
        for batch in iterator:
            size_bytes += batch.nbytes
            if size_bytes > TASK_BYTES_MAX:
                raise _too_large()
            batches.append(batch)
        rows = pa.Table.from_batches(batches) if batches else self._schema.empty_table()
        return HandedOver(packed_table(rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.write_together(messages)

    def write_together(
        self, messages: list[WriterCommitMessage | None], batch: StreamBatch | None = None
    ) -> None:
        """Write the rows of all tasks in one commit, as a batch of a stream if they are one."""
        packed = [one.packed for one in messages if isinstance(one, HandedOver)]
        tables = [table for table in map(unpacked_table, packed) if len(table)]
        rows = pa.concat_tables(tables) if tables else self._schema.empty_table()
        table = saved_table(self._location, self._options, rows.schema)
        if batch is not None:
            options = {EVOLVE.key: "true", **self._options}
            getattr(table, self._operation)(rows, options=options, stream=batch)
            return
        save(table, rows, self._options, overwrites=self._overwrites)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was started, so that there is nothing to undo."""


class StreamWriter(_StreamArrowWriter):  # type: ignore[valid-type, misc]
    """Writes the batches of a streaming query, each once.

    The process that commits knows neither the query nor its session: the tasks hand over whose
    they are.
    """

    def __init__(
        self,
        location: Location,
        options: Mapping[str, str],
        schema: StructType,
        *,
        overwrites: bool,
    ) -> None:
        given = dict(options)
        self._name = given.pop(STREAM_NAME, "")
        self._checkpoint = _popped(given, _CHECKPOINT)
        self._frames = FrameWriter(location, given, schema, overwrites=False)
        operation = check_options(given)
        if overwrites or operation not in _OF_STREAMS:
            raise InvalidRequest(
                "unsupported_operation",
                what=f"A stream cannot {'replace rows' if overwrites else operation}.",
                why=f"It appends by {', '.join(_OF_STREAMS)}.",
                now="Use outputMode('append') or 'update', and one of these operations.",
                operation=operation,
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> HandedOver:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY)
        return replace(self._frames.write(iterator), query=query or "")

    def commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        queries = {one.query for one in messages if isinstance(one, HandedOver)}
        query = next(iter(queries)) if len(queries) == 1 else ""
        named = named_batch(self._name, batch, query, self._checkpoint)
        self._frames.write_together(messages, named)

    def abort(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        """Nothing was started, so that there is nothing to undo."""


def _popped(options: dict[str, str], name: str) -> str:
    """An option that Spark hands over in small letters, taken out of the others."""
    found = [key for key in options if key.lower() == name]
    return [options.pop(key) for key in found][-1] if found else ""


def _too_large() -> InvalidRequest:
    return InvalidRequest(
        "too_large_for_data_source",
        what=f"A Spark task has more than {TASK_BYTES_MAX >> 20} MB of rows.",
        why="A Python data source writes all rows from one process.",
        now="Use lakewarden.Table(path).upsert(frame), which writes on all workers.",
    )
