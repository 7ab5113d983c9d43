"""Sources: whatever holds rows, as an Arrow table."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.write.distributed_rows import DistributedRows
from lakewarden.engine.write.plain_rows import PlainRows, unreadable
from lakewarden.engine.write.request import Incoming


@runtime_checkable
class ArrowStream(Protocol):
    """Anything that speaks Arrow's C stream interface: pandas, polars, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """Anything that is one Arrow record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


Rows: TypeAlias = ArrowStream | ArrowArray | Sequence[Mapping[str, object]]


# What rows may be when they come to an operation.
Given: TypeAlias = Rows | Incoming | DistributedRows


def incoming_rows(rows: Given) -> Incoming | DistributedRows | PlainRows:
    """The rows as a request has them: here, or where they are."""
    if isinstance(rows, Incoming | DistributedRows):
        return rows
    found = read_rows(rows)
    return found if isinstance(found, PlainRows) else Incoming(found)


def read_rows(rows: Rows) -> pa.Table | PlainRows:
    """The rows, without a copy where the source holds them in Arrow already."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        return PlainRows(rows)
    try:
        if isinstance(rows, ArrowStream):
            return pa.RecordBatchReader.from_stream(rows).read_all()
        if isinstance(rows, ArrowArray):
            return pa.Table.from_batches([pa.record_batch(rows)])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise unreadable(type(rows).__name__, error) from None
    raise InvalidRequest(
        "unsupported_rows",
        what=f"Lakewarden cannot read rows from a {type(rows).__name__}.",
        why="Rows come from an Arrow table or reader, a DataFrame, or a list of dictionaries.",
        now="Pass one of these.",
    )
