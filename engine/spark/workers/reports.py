"""Reports: values that workers hand to the driver, each as one row with one binary column.

What will fail again is handed over as an error, so that the caller gets it as it was raised; Spark
tries other tasks again. Workers that hand over no reports put the error into words that Spark
passes on.
"""

import base64
import pickle
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewarden.engine.kernel.errors import LakewardenError, Unavailable
from lakewarden.engine.spark.workers.older_sparks import arrow_of
from lakewarden.engine.write.files.spec import WrittenFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]
REPORT_DDL = "report binary"
_IN_WORDS = re.compile(r"lakewarden-error:([A-Za-z0-9+/=]+)")
_SCHEMA = pa.schema([pa.field("report", pa.binary())])


def reported(work: Callable[[], Iterator[object]]) -> Batches:
    """The values that some work gives, as rows for Spark."""
    try:
        for value in work():
            yield _row(value)
    except Unavailable:
        raise
    except LakewardenError as error:
        yield _row(error)


def reports_of(frame: "DataFrame") -> Iterator[object]:
    """The values that workers have handed over, in the order of their tasks."""
    try:
        cells = arrow_of(frame).column(0)
    except Exception as failure:
        words = _IN_WORDS.search(str(failure))
        if words is None:
            raise
        raise pickle.loads(base64.b64decode(words[1])) from None
    for cell in cells:
        value = pickle.loads(cell.as_buffer())
        if isinstance(value, LakewardenError):
            raise value
        yield value


def written_file(report: object) -> WrittenFile:
    """The report of a worker that makes files."""
    assert isinstance(report, WrittenFile)
    return report


class ErrorInWords(Exception):
    """An error of ours on its way through Spark, which passes on nothing but words."""

    def __init__(self, error: LakewardenError) -> None:
        packed = base64.b64encode(pickle.dumps(error)).decode()
        super().__init__(f"{error} (lakewarden-error:{packed})")


def _row(value: object) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(value)], pa.binary())], schema=_SCHEMA)


def packed_table(table: pa.Table) -> bytes:
    """A table as bytes, of which a slice takes no more than its own rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def unpacked_table(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()
