"""Change logs: what a write did to the rows of a file group that it rewrites, for Java and for us.

Java infers the changes of new base files and of logs from these. Of a rewritten base file it wants
a log of change data, and fails without.
"""

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import CDC_SUFFIX
from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.log.write import BlockOrigin, change_blocks
from lakewarden.engine.metadata.entries.changes import NewFile
from lakewarden.engine.read.merge.row_changes import RowChanges, changes_between
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.change_logging import (
    AFTER,
    AT,
    BEFORE,
    LOGGED_KEY,
    OPERATION,
    LoggingMode,
    change_schema_text,
)
from lakewarden.engine.table.merge_rules import PartialMode
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.write.files.key_changes import together, written_out
from lakewarden.engine.write.files.spec import WriteSpec

LOG_VERSION = 1


def log_name(key: FileGroupId, spec: WriteSpec, task_number: int) -> str:
    """The name of the log that a task makes for a file group."""
    return f".{key.file_id}_{spec.instant}.log.{LOG_VERSION}_{spec.write_token(task_number)}"


def new_change_log(key: FileGroupId, spec: WriteSpec, task_number: int) -> MarkedFile:
    """The place and name of the log of change data that a task is going to make."""
    return MarkedFile(key.partition, log_name(key, spec, task_number) + CDC_SUFFIX)


class RowCapture:
    """Gathers rows on their way into a new base file whose keys the write knows, as they were and
    as they become."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._before: list[pa.Table] = []
        self._after: list[pa.Table] = []

    def before(self, rows: pa.Table) -> None:
        self._before.append(written_out(rows))

    def after(self, rows: pa.Table) -> None:
        self._after.append(written_out(rows))

    def changes(self, spec: WriteSpec) -> RowChanges:
        """What the write did; complete after the last row."""
        before, after = (
            self._schema.empty_table() if parts is None else parts
            for parts in map(together, (self._before, self._after))
        )
        fills = spec.rules.partial is not PartialMode.NONE
        return changes_between(before, after, spec.instant, fills=fills)


def store_changes(
    storage: Storage, target: MarkedFile, changes: RowChanges, spec: WriteSpec, mode: LoggingMode
) -> NewFile:
    """Write a log of change data."""
    columns = {
        OPERATION: lambda: changes.operations,
        AT: lambda: pa.repeat(pa.scalar(spec.instant, pa.string()), len(changes.operations)),
        LOGGED_KEY: lambda: changes.keys,
        BEFORE: lambda: _images(changes.before, changes.has_before, spec),
        AFTER: lambda: _images(changes.after, changes.has_after, spec),
    }
    rows = pa.table({name: columns[name]() for name in mode.columns})
    origin = BlockOrigin(spec.instant, change_schema_text(mode, spec.schema.avro_text or ""))
    with storage.create(target.path) as stream:
        for block in change_blocks(rows, origin, bytes_max=spec.files.log_block_bytes):
            stream.write(block)
        size_bytes: int = stream.tell()
    return NewFile(target.partition, target.name, size_bytes)


def _images(rows: pa.Table, is_there: pa.Array, spec: WriteSpec) -> pa.StructArray:
    """Rows as records of the table, without meta columns; null where there is none."""
    if spec.key_column is not None:
        rows = rows.append_column(spec.key_column, rows.column(RECORD_KEY))
    columns = [rows.column(name).combine_chunks() for name in spec.schema.columns.names]
    fields = [
        field.with_type(column.type)
        for field, column in zip(spec.schema.columns, columns, strict=True)
    ]
    is_gone = pa.array([not one for one in is_there.to_pylist()], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=fields, mask=is_gone)
