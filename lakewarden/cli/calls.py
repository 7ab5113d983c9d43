"""Calls: what a procedure answers to a command."""

from collections.abc import Iterator, Mapping

from lakewarden.cli.call_arguments import CallWish
from lakewarden.cli.output import Answer, Row
from lakewarden.procedures.caller import PlainCaller
from lakewarden.procedures.invocation import invoke

# Outcomes that are told in a row, and yet are not what was wanted: the same codes as for errors.
_CODES: Mapping[object, int] = {"refused": 1, "already_committed": 3}


def call_answer(wish: CallWish) -> Answer:
    """The rows of a call; it is done as they are taken."""
    columns = [column.name for column in wish.procedure.columns]
    caller = PlainCaller(storage_options=wish.storage_options)
    rows = invoke(wish.procedure, caller, (), wish.named)
    return Answer(columns, (dict(zip(columns, row, strict=True)) for row in rows))


def watched(answer: Answer, codes: list[int]) -> Answer:
    """The same answer, which notes the exit codes of rows that tell of no success."""

    def rows() -> Iterator[Row]:
        for row in answer.rows:
            codes.append(_CODES.get(row.get("outcome"), 0))
            yield row

    return Answer(answer.columns, rows())
