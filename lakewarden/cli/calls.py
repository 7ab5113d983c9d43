"""Calls: what a procedure answers to a command."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lakewarden.cli.call_arguments import CallCommand
from lakewarden.cli.output import ResultTable
from lakewarden.engine.kernel.events import EventSink, log_event
from lakewarden.engine.kernel.shown import Row
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.procedures.invocation import invoke

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
