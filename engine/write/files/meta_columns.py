"""Meta columns: what Hudi keeps of every row besides the table's own columns."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.table.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
)

# What a row keeps when its file is rewritten; the other two are the same for a whole file.
OWN_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)


def with_own_columns(
    rows: pa.Table, keys: pa.StringArray, *, instant: str, task_number: int, first: int = 0
) -> pa.Table:
    """New rows behind their commit time, sequence number and key; numbers go on from `first`."""
    columns = [constant(instant, len(keys)), sequence(instant, task_number, first, len(keys)), keys]
    fields = [pa.field(name, pa.string()) for name in OWN_COLUMNS]
    return pa.table([*columns, *rows.columns], schema=pa.schema([*fields, *rows.schema]))


def with_file_columns(rows: pa.Table, partition: str, file_name: str) -> pa.Table:
    """Rows with all meta columns in their order; those of the file are kept as dictionaries."""
    count, own = len(rows), len(OWN_COLUMNS)
    columns = {
        **dict(zip(OWN_COLUMNS, rows.columns[:own], strict=True)),
        PARTITION_PATH: repeated(partition, count),
        FILE_NAME: repeated(file_name, count),
    }
    named = dict(zip(rows.column_names[own:], rows.columns[own:], strict=True))
    return pa.table({**columns, **named})


def without_identity(rows: pa.Table) -> pa.Table:
    """Rows as tables with virtual keys store them: of the meta columns only the file is filled."""
    for name in (*OWN_COLUMNS, PARTITION_PATH):
        place = rows.schema.get_field_index(name)
        nulls = pa.nulls(len(rows), pa.string())
        rows = rows.set_column(place, pa.field(name, pa.string()), nulls)
    return rows


def constant(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """One text for all rows, at the cost of four bytes each."""
    zeros = pa.array(np.zeros(count, np.int32))
    return pa.DictionaryArray.from_arrays(zeros, pa.array([text]), safe=False)


def sequence(instant: str, task_number: int, first: int, count: int) -> pa.Array:
    """The sequence numbers of rows: the instant, the task, and a running number."""
    numbers = pa.array(np.arange(first, first + count)).cast(pa.string())
    return pc.binary_join_element_wise(f"{instant}_{task_number}", numbers, "_")
