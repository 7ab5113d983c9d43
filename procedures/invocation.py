"""Invocation: one call of a procedure, from its arguments to its rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.binding import bind
from lakewarden.procedures.conditions.row_filter import row_filter
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Column, Procedure
from lakewarden.procedures.declaring.sql_types import SqlType

Row = tuple[object, ...]


def invoke(
    procedure: Procedure,
    caller: Caller,
    positional: Sequence[object] = (),
    named: Mapping[str, object] | None = None,
) -> Iterator[Row]:
    """Call a procedure; the rows are in the order of its columns.

    Whatever is wrong with the arguments is said before anything is looked at, or done.
    """
    values = bind(procedure, positional, named or {})
    changes = procedure.is_mutating and not values.get("dry_run", False)
    # What only shows may be asked to delete what it has found.
    if changes or values.get("need_delete", False):
        caller.permissions.check_change(procedure.name)
    meets = _filter(procedure, values)
    limit = _limit(procedure, values)
    caller.check_interrupted()
    # A field has the parameter's name unless Python can't spell it, which no argument needs.
    rows = procedure.call(**values).run(caller)
    heeded = _heeding(caller, _tuples(procedure, rows))
    return islice(filter(meets, heeded), limit)


def _tuples(procedure: Procedure, rows: Iterable[object]) -> Iterator[Row]:
    cells = [_cell(column) for column in procedure.columns]
    for row in rows:
        yield tuple(cell(row) for cell in cells)


def _cell(column: Column) -> Callable[[object], object]:
    """The value of a column; where Python takes a whole number for a float, clients see nothing."""
    value = attrgetter(column.field)
    if column.type is not SqlType.DOUBLE:
        return value
    return lambda row: None if value(row) is None else float(value(row))


def _filter(procedure: Procedure, values: Mapping[str, object]) -> Callable[[Row], bool]:
    """Whether a row is wanted."""
    text = values.get(procedure.filter_parameter or "")
    if not isinstance(text, str) or not text.strip():
        return lambda _: True
    return row_filter(text, procedure.columns)


def _limit(procedure: Procedure, values: Mapping[str, object]) -> int | None:
    unless = procedure.limit_unless
    if procedure.limit_parameter is None or (unless and all(values[one] for one in unless)):
        return None
    limit = values[procedure.limit_parameter]
    if not isinstance(limit, int):
        return None
    if limit < 0:
        raise InvalidRequest(
            "bad_argument",
            what=f"limit => {limit} is not valid.",
            why="A limit is the largest number of rows.",
            now="Give zero or a larger number.",
            argument="limit",
        )
    return limit


def _heeding(caller: Caller, rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        caller.check_interrupted()
        yield row
