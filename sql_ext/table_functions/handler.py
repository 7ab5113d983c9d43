"""Handlers: what Spark's workers call for each path that a query gives to a function."""

from collections.abc import Iterator, Mapping

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.caller import PlainCaller
from lakewarden.procedures.declaration import Procedure
from lakewarden.procedures.invocation import Row, invoke


def handler(procedure: Procedure, arguments: Mapping[str, object], caller: PlainCaller) -> type:
    """A class as Spark wants it; it travels with the procedure and the caller."""

    class Handler:
        def eval(self, path: str) -> Iterator[Row]:
            yield from rows(procedure, arguments, caller, path)

    return Handler


def rows(
    procedure: Procedure, arguments: Mapping[str, object], caller: PlainCaller, path: str | None
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
        why="Names are looked up in the session's catalog before rows are read, so that a column"
        " can only have paths.",
        now="Give the name itself to the function, or paths in the column.",
        name=name,
    )
