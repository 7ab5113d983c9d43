"""Handlers: what Spark's workers call for each path that a query gives to a function."""

from collections.abc import Iterator, Mapping

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.binding import Row, invoke
from lakewarden.procedures.declaring.caller import Caller, PlainCaller
from lakewarden.procedures.declaring.declaration import Procedure
from lakewarden.sql_ext.session.answers import error_parts

# What becomes of errors: the planner asks for them to be reported, as a worker's have stacks.
RAISED, REPORTED = "raised", "reported"


def handler(procedure: Procedure, arguments: Mapping[str, object], caller: PlainCaller) -> type:
    """A class as Spark wants it; it travels with the procedure and the caller."""

    class Handler:
        def eval(self, path: str, errors: str = RAISED) -> Iterator[Row]:
            found = rows(procedure, arguments, caller, path)
            yield from reported(found, len(procedure.columns)) if errors == REPORTED else found

    return Handler


def reported(rows: Iterator[Row], width: int) -> Iterator[Row]:
    """Rows of so many columns, and one more for the parts of the error that ended them, if any."""
    try:
        for row in rows:
            yield (*row, None)
    except Exception as error:
        yield (*[None] * width, list(error_parts(error).values()))


def rows(
    procedure: Procedure, arguments: Mapping[str, object], caller: Caller, path: str | None
) -> Iterator[Row]:
    """The rows of one table; none for no path, as a join with no partner has none."""
    if path is None:
        return
    if "/" not in path:
        raise _no_path(path)
    yield from invoke(procedure, caller, (), {"path": path, **arguments})


def _no_path(name: str) -> InvalidRequest:
    return InvalidRequest(
        "no_path",
        what=f"{name!r} is not a path.",
        why="Lakewarden looks up names before it reads rows, so a column can hold paths only.",
        now="Pass the name itself to the function, or put paths in the column.",
        name=name,
    )
