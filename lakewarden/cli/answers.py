"""Answers: what each command shows of a table."""

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from lakewarden.cli.conditions import condition
from lakewarden.cli.output import Answer, Row
from lakewarden.cli.wish import Wish
from lakewarden.engine.read.predicate import Condition
from lakewarden.engine.timeline.instant import Instant
from lakewarden.engine.view.slices import FileSlice
from lakewarden.table import Table


def answer(table: Table, wish: Wish) -> Answer:
    """The answer to a wish; its rows are read as they are taken."""
    return _ANSWERS[wish.command](table, wish)


def _timeline(table: Table, _: Wish) -> Answer:
    columns = ("requested", "action", "state", "completed")
    return Answer(columns, map(_instant_row, table.timeline().instants))


def _instant_row(instant: Instant) -> Row:
    return {
        "requested": instant.requested,
        "action": instant.action.value,
        "state": instant.state.name.lower(),
        "completed": instant.completed,
    }


def _files(table: Table, wish: Wish) -> Answer:
    columns = ("partition", "file_id", "base_instant", "base_file", "log_files", "size_bytes")
    slices = table.file_slices(wish.partition, wish.as_of, use_metadata=wish.use_metadata)
    return Answer(columns, map(_slice_row, slices))


def _slice_row(slice_: FileSlice) -> Row:
    return {
        "partition": slice_.partition,
        "file_id": slice_.file_id,
        "base_instant": slice_.base_instant,
        "base_file": slice_.base_file.name if slice_.base_file else None,
        "log_files": [log.name for log in slice_.log_files],
        "size_bytes": slice_.size_bytes,
    }


def _partitions(table: Table, _: Wish) -> Answer:
    return Answer(("partition",), ({"partition": path} for path in table.partitions()))


def _indexes(table: Table, _: Wish) -> Answer:
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
    return Answer(columns, rows)


def _read(table: Table, wish: Wish) -> Answer:
    columns = wish.columns or table.schema.names
    if wish.since is not None:
        changes = table.changes_arrow(
            wish.since, wish.until, columns=wish.columns, filter=_filter(table, wish)
        )
        return Answer(columns, _rows(iter(changes.to_batches())))
    batches = table.read_batches(
        columns=wish.columns,
        filter=_filter(table, wish),
        as_of=wish.as_of,
        mode=wish.mode,
        use_metadata=wish.use_metadata,
    )
    return Answer(columns, _rows(batches))


def _explain(table: Table, wish: Wish) -> Answer:
    scan = table.explain(
        columns=wish.columns,
        filter=_filter(table, wish),
        as_of=wish.as_of,
        mode=wish.mode,
        use_metadata=wish.use_metadata,
    )
    return Answer(("partition", "file_id", "verdict", "reason"), scan.rows())


_ANSWERS: Mapping[str, Callable[[Table, Wish], Answer]] = {
    "timeline": _timeline,
    "files": _files,
    "partitions": _partitions,
    "indexes": _indexes,
    "read": _read,
    "explain": _explain,
}


def _filter(table: Table, wish: Wish) -> list[Condition] | None:
    if not wish.where:
        return None
    schema = table.schema
    return [condition(text, schema) for text in wish.where]


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from batch.to_pylist(maps_as_pydicts="lossy")
