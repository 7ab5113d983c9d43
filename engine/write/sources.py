"""Sources: whatever holds rows, as an Arrow table."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.write.far_rows import FarRows
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
Given: TypeAlias = Rows | Incoming | FarRows


def incoming_rows(rows: Given) -> Incoming | FarRows:
    """The rows as a request has them: here, or where they are."""
    return rows if isinstance(rows, Incoming | FarRows) else Incoming(arrow_rows(rows))


def arrow_rows(rows: Rows) -> pa.Table:
    """The rows, without a copy where the source holds them in Arrow already."""
    if isinstance(rows, pa.Table):
        return rows
    try:
        if isinstance(rows, ArrowStream):
            return pa.RecordBatchReader.from_stream(rows).read_all()
        if isinstance(rows, ArrowArray):
            return pa.Table.from_batches([pa.record_batch(rows)])
        if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
            return _columns(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            "unreadable_rows",
            what=f"The rows in this {type(rows).__name__} don't fit into columns.",
            why=str(error).partition("\n")[0],
            now="Give every value of a column the same type, or pass an Arrow table.",
        ) from None
    raise InvalidRequest(
        "unsupported_rows",
        what=f"Rows can't be taken from a {type(rows).__name__}.",
        why="It is no Arrow table or reader, no DataFrame, and no list of dictionaries.",
        now="Pass one of these.",
    )


def _columns(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Columns for all names that occur, in the order of their first occurrence."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})
