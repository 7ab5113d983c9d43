"""Answers: what each command shows of a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from lakewarden.cli.command_line import CommandLine
from lakewarden.cli.conditions import where
from lakewarden.cli.output import ResultTable
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.shown import Row, row_of
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.table import Table


def answer(table: Table, command: CommandLine) -> ResultTable:
    """The answer to a request; its rows are read as they are taken."""
    return _ANSWERS[command.command](table, command)


def _timeline(table: Table, _: CommandLine) -> ResultTable:
    return _listed(table.timeline().instants, Instant.SHOWN)


def _files(table: Table, command: CommandLine) -> ResultTable:
    slices = table.file_slices(command.partition, command.as_of, use_metadata=command.use_metadata)
    return _listed(slices, FileSlice.SHOWN)


def _listed(values: Iterable[object], columns: Sequence[str]) -> ResultTable:
    return ResultTable(columns, map(row_of, values), has_units=True)


def _partitions(table: Table, _: CommandLine) -> ResultTable:
    return ResultTable(("partition",), ({"partition": path} for path in table.partitions()))


def _indexes(table: Table, _: CommandLine) -> ResultTable:
    columns = ("name", "partition", "type", "columns", "state")
    rows = (
        {
            "name": index.name,
            "partition": index.partition,
            "type": index.index_type,
            "columns": list(index.columns),
            "state": index.state,
        }
        for index in table.indexes()
    )
    return ResultTable(columns, rows)


def _read(table: Table, command: CommandLine) -> ResultTable:
    columns = command.columns or table.schema.names
    if command.since is not None:
        changes = table.changes_arrow(
            command.since, command.until, columns=command.columns, filter=_filter(table, command)
        )
        return ResultTable(columns, _rows(iter(changes.to_batches())))
    batches = table.read_batches(
        columns=command.columns,
        filter=_filter(table, command),
        as_of=command.as_of,
        mode=command.mode,
        use_metadata=command.use_metadata,
    )
    return ResultTable(columns, _rows(batches))


def _explain(table: Table, command: CommandLine) -> ResultTable:
    scan = table.explain(
        columns=command.columns,
        filter=_filter(table, command),
        as_of=command.as_of,
        mode=command.mode,
        use_metadata=command.use_metadata,
    )
    return ResultTable(("partition", "file_id", "verdict", "reason"), scan.rows())


_ANSWERS: Mapping[str, Callable[[Table, CommandLine], ResultTable]] = {
    "timeline": _timeline,
    "files": _files,
    "partitions": _partitions,
    "indexes": _indexes,
    "read": _read,
    "explain": _explain,
}


def _filter(table: Table, command: CommandLine) -> str | None:
    return where(command.where, table.schema) if command.where else None


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from batch.to_pylist(maps_as_pydicts="lossy")
