"""Trying the same with each of several instants: one failure is a row, all are an error."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.procedures.declaring.caller import Caller

Row = TypeVar("Row")


def each_tried(
    caller: Caller,
    instants: Sequence[str],
    done: Callable[[str], Row],
    failed: Callable[[str, LakewardenError], Row],
) -> Iterable[Row]:
    """A row for each instant, of what was done or why it failed."""
    rows: list[Row] = []
    failures: list[LakewardenError] = []
    for instant in instants:
        caller.check_interrupted()
        try:
            rows.append(done(instant))
        except LakewardenError as error:
            failures.append(error)
            rows.append(failed(instant, error))
    if failures and len(failures) == len(instants):
        raise failures[0]
    return rows
