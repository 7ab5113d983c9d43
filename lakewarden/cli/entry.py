"""The entry of the command line: run one command, and tell by the exit code how it went.

Calls: what a procedure answers to a command.

Conditions as people type them: SQL, or a column, an operator and a value without quotes.

Answers: what each command shows of a table.
"""

import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from lakewarden.cli.arguments import parse
from lakewarden.cli.call_arguments import CallCommand
from lakewarden.cli.command_line import CommandLine
from lakewarden.cli.output import FORMATS, ResultTable
from lakewarden.cli.overview import all_commands, completion, overview, version_line
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.kernel.errors import (
    Conflict,
    Defect,
    InvalidRequest,
    LakewardenError,
    Unavailable,
)
from lakewarden.engine.kernel.events import EventSink, log_event
from lakewarden.engine.kernel.shown import Row, row_of
from lakewarden.engine.read.merge.predicate import bind_filter
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.timeline.instants.instant import Instant
from lakewarden.late_imports import run_console, run_server
from lakewarden.procedures.binding import invoke
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.progress import ProgressLine
from lakewarden.table import Table

# Outcomes in a result row that are not what was asked for: the same codes as for errors.
_CODES: Mapping[object, int] = {"refused": 1, "already_committed": 3}
HEALTH = "table_health"
UNREADABLE = 2
_VERDICTS: Mapping[object, int] = {"attention": 1, "unreadable": UNREADABLE}


def call_answer(command: CallCommand, events: EventSink = log_event) -> ResultTable:
    """The rows of a call; it is done as they are taken."""
    columns = [column.name for column in command.procedure.columns]
    caller = PlainCaller(storage_options=command.storage_options, events=events)
    rows = invoke(command.procedure, caller, (), command.named)
    return ResultTable(
        columns, (dict(zip(columns, row, strict=True)) for row in rows), has_units=True
    )


def watched(answer: ResultTable, codes: list[int]) -> ResultTable:
    """The same answer, which notes the exit codes of rows that tell of no success."""

    def rows() -> Iterator[Row]:
        for row in answer.rows:
            codes.extend((_CODES.get(row.get("outcome"), 0), _VERDICTS.get(row.get("verdict"), 0)))
            yield row

    return replace(answer, rows=rows())


_CONDITION = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<column>.+?))\s*(?P<operator><=|>=|!=|<>|==|=|<|>)"
    r"\s*(?P<value>.*?)\s*",
    re.DOTALL,
)
# A text with these is more than one condition.
_JOINED = re.compile(r"\s(and|or)\s", re.IGNORECASE)


def where(texts: Sequence[str], schema: pa.Schema) -> str | None:
    """The filter that all of some conditions make; `InvalidRequest` for what is none.

    >>> where(["qty >= 3", "city = Oslo"], pa.schema([("qty", pa.int64()), ("city", pa.string())]))
    "(qty >= 3) AND (`city` = 'Oslo')"
    """
    if not texts:
        return None
    return " AND ".join(f"({_condition(text, schema)})" for text in texts)


def _condition(text: str, schema: pa.Schema) -> str:
    try:
        bind_filter(text, schema)
    except InvalidRequest:
        quoted = _with_quotes(text, schema)
        if quoted is None:
            raise
        bind_filter(quoted, schema)
        return quoted
    return text


def _with_quotes(text: str, schema: pa.Schema) -> str | None:
    """A condition whose column and value have the quotes that a shell makes hard to type."""
    match = _CONDITION.fullmatch(text)
    column = match and (match["quoted"] or match["column"])
    if match is None or column not in schema.names:
        return None
    value = match["value"]
    if _JOINED.search(value):
        return None
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    literal = exp.Literal.string(value[1:-1] if is_quoted else value).sql(dialect="spark")
    operator = "=" if match["operator"] == "==" else match["operator"]
    return f"`{column}` {operator} {literal}"


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


DONE, ERROR, RETRY, CONFLICT, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command: done (0), error (1), try again (2), conflict (3) or interrupted (130).

    `health` says whether all is well (0), something wants attention (1), or the table cannot be
    read (2).
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    codes, is_health = [DONE], False
    try:
        special = _SPECIAL.get(given[0] if given else "--help")
        if special is not None:
            return special(given[1:])
        command = parse(given)
        is_health = isinstance(command, CallCommand) and command.procedure.name == HEALTH
        with ProgressLine.on_terminal() as line:
            _print(_lines(command, codes, line), before=line.end)
    except LakewardenError as error:
        code = _failed(error)
        return UNREADABLE if is_health else code
    except BrokenPipeError:
        _leave_stdout()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as cause:
        return _failed(_defect(cause))
    return max(codes)


def _sql(arguments: Sequence[str]) -> int:
    return DONE if run_console(arguments) else ERROR


def _serve(arguments: Sequence[str]) -> int:
    run_server(arguments)
    return DONE


def _shown(lines: Callable[[Sequence[str]], Iterable[str]]) -> Callable[[Sequence[str]], int]:
    def show(arguments: Sequence[str]) -> int:
        _print(lines(arguments))
        return DONE

    return show


_SPECIAL: Mapping[str, Callable[[Sequence[str]], int]] = {
    "sql": _sql,
    "serve": _serve,
    "commands": _shown(lambda _: all_commands()),
    "completion": _shown(completion),
    **dict.fromkeys(("-h", "--help"), _shown(lambda _: overview())),
    "--version": _shown(lambda _: [version_line()]),
}


def _lines(
    command: CommandLine | CallCommand, codes: list[int], events: EventSink
) -> Iterable[str]:
    if isinstance(command, CallCommand):
        return FORMATS[command.output](watched(call_answer(command, events), codes))
    found = answer(Table(command.path, command.options, ports=Ports(events=events)), command)
    rows = islice(found.rows, command.limit)
    return FORMATS[command.output](replace(found, rows=rows))


def _print(lines: Iterable[str], before: Callable[[], None] = lambda: None) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # JSON is UTF-8 whatever the terminal is, and file names need not be text at all.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    for line in lines:
        before()
        print(line)
    sys.stdout.flush()


def _leave_stdout() -> None:
    """The reader has enough; what is left in our buffer must not fail on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code(error: LakewardenError) -> int:
    """How the process ends after an error: 2 and 3 tell scripts that trying again may help."""
    if isinstance(error, Conflict):
        return CONFLICT
    return RETRY if isinstance(error, Unavailable) else ERROR


def _failed(error: LakewardenError) -> int:
    print(f"{error.code}: {error}", file=sys.stderr)
    return exit_code(error)


def _defect(cause: Exception) -> Defect:
    place = traceback.extract_tb(cause.__traceback__)[-1]
    return Defect(
        "unexpected_error",
        what=f"{type(cause).__name__}: {cause}",
        why=f"It came from {Path(place.filename).name}, line {place.lineno}, in {place.name}.",
        now="This is a defect of Lakewarden. Please report it with the command.",
    )
