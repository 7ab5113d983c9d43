"""The command line: look at a Hudi table from a shell."""

import argparse
import sys
from collections.abc import Sequence

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict, InvalidRequest, LakewardenError, Unavailable
from lakewarden.output import FORMATS, Row

DONE, ERROR, RETRY, CONFLICT = 0, 1, 2, 3
OPERATORS = ("<=", ">=", "!=", "=", "<", ">")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says done (0), error (1), retry (2) or conflict (3)."""
    wish = _parser().parse_args(arguments)
    try:
        rows, columns = wish.run(Table(wish.path, storage_options=_options(wish.option)), wish)
    except LakewardenError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return _exit_code(error)
    text = FORMATS[wish.output](rows, columns)
    if text:
        print(text)
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lakewarden", description="Look at a Hudi table.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (run, description) in _COMMANDS.items():
        command = commands.add_parser(name, help=description, description=description)
        command.set_defaults(run=run)
        command.add_argument("path", metavar="PATH", help="folder of the table, or its URI")
        command.add_argument("--output", choices=sorted(FORMATS), default="table")
        command.add_argument(
            "--option", action="append", default=[], metavar="KEY=VALUE", help="storage option"
        )
        if name == "files":
            command.add_argument("--partition", help="only this partition")
            command.add_argument("--as-of", metavar="INSTANT")
        if name in ("read", "explain"):
            _add_read_arguments(command)
    return parser


def _add_read_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--columns", help="comma separated; all without it")
    command.add_argument(
        "--where", action="append", default=[], metavar="'COLUMN OP VALUE'", help="e.g. 'qty > 3'"
    )
    command.add_argument("--as-of", metavar="INSTANT")
    command.add_argument("--mode", choices=("snapshot", "read_optimized"), default="snapshot")
    command.add_argument("--since", metavar="INSTANT", help="only changes completed after it")
    command.add_argument("--limit", type=int, default=None, metavar="ROWS")
    command.add_argument("--no-metadata", action="store_true", help="list the storage instead")


Answer = tuple[list[Row], Sequence[str]]


def _timeline(table: Table, wish: argparse.Namespace) -> Answer:
    columns = ("requested", "action", "state", "completed")
    return [
        {
            "requested": instant.requested,
            "action": instant.action.value,
            "state": instant.state.value,
            "completed": instant.completed,
        }
        for instant in table.timeline().instants
    ], columns


def _files(table: Table, wish: argparse.Namespace) -> Answer:
    columns = ("partition", "file_id", "base_instant", "base_file", "log_files", "size_bytes")
    return [
        {
            "partition": slice_.partition,
            "file_id": slice_.file_id,
            "base_instant": slice_.base_instant,
            "base_file": slice_.base_file.name if slice_.base_file else None,
            "log_files": [log.name for log in slice_.log_files],
            "size_bytes": slice_.size_bytes,
        }
        for slice_ in table.file_slices(partition=wish.partition, as_of=wish.as_of)
    ], columns


def _partitions(table: Table, wish: argparse.Namespace) -> Answer:
    return [{"partition": path} for path in table.partitions()], ("partition",)


def _indexes(table: Table, wish: argparse.Namespace) -> Answer:
    columns = ("name", "partition", "type", "columns", "state")
    return [
        {
            "name": index.name,
            "partition": index.partition,
            "type": index.index_type,
            "columns": list(index.columns),
            "state": index.state,
        }
        for index in table.indexes()
    ], columns


def _read(table: Table, wish: argparse.Namespace) -> Answer:
    wanted = wish.columns.split(",") if wish.columns else None
    where = [_condition(text, table.schema) for text in wish.where] or None
    if wish.since is not None:
        rows = table.changes_arrow(wish.since, wish.as_of, columns=wanted, filter=where)
        rows = rows if wish.limit is None else rows.slice(0, wish.limit)
        return rows.to_pylist(), rows.column_names
    batches = table.read_batches(
        columns=wanted,
        filter=where,
        as_of=wish.as_of,
        mode=wish.mode,
        use_metadata=not wish.no_metadata,
    )
    rows_read: list[Row] = []
    names: Sequence[str] = wanted or table.schema.names
    for batch in batches:
        rows_read.extend(batch.to_pylist())
        if wish.limit is not None and len(rows_read) >= wish.limit:
            break
    return rows_read[: wish.limit], names


def _explain(table: Table, wish: argparse.Namespace) -> Answer:
    where = [_condition(text, table.schema) for text in wish.where] or None
    plan = table.explain(
        columns=wish.columns.split(",") if wish.columns else None,
        filter=where,
        as_of=wish.as_of,
        mode=wish.mode,
        use_metadata=not wish.no_metadata,
    )
    return [dict(row) for row in plan.rows()], ("partition", "file_id", "verdict", "reason")


_COMMANDS = {
    "timeline": (_timeline, "the instants of the active timeline"),
    "files": (_files, "the latest file slices"),
    "partitions": (_partitions, "the partitions"),
    "indexes": (_indexes, "the indexes of the metadata table"),
    "read": (_read, "the rows, or the changes since an instant"),
    "explain": (_explain, "what a read would touch and skip, and why"),
}


def _condition(text: str, schema: pa.Schema) -> tuple[str, str, object]:
    operator = next((known for known in OPERATORS if known in text), None)
    if operator is None:
        raise InvalidRequest(
            "bad_filter",
            what=f"The condition {text!r} has no operator.",
            why=f"It must be COLUMN OP VALUE with one of {' '.join(OPERATORS)}.",
            now="For example: --where 'qty > 3'.",
        )
    column, _, value = (part.strip() for part in text.partition(operator))
    if column not in schema.names:
        return column, operator, value
    try:
        typed = pa.scalar(value.strip("'\"")).cast(schema.field(column).type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidRequest(
            "bad_filter",
            what=f"{value!r} is no value of column {column!r}.",
            why=f"The column has type {schema.field(column).type}.",
            now="Correct the value.",
        ) from None
    return column, operator, typed.as_py()


def _options(items: Sequence[str]) -> dict[str, object]:
    return {key: value for key, _, value in (item.partition("=") for item in items)}


def _exit_code(error: LakewardenError) -> int:
    if isinstance(error, Conflict):
        return CONFLICT
    return RETRY if isinstance(error, Unavailable) else ERROR
